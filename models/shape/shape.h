// A model: a list of named parameter tensors, and the cost of one sample, block by block. A step
// forecast needs nothing else of a network.
//
// Reason for a tensor list instead of a parameter count: LAMB has one trust ratio per tensor, 1-bit
// LAMB one scaling coefficient per tensor, 1-bit Adam one compressed all-reduce per parameter
// group, and the engine also sums gradients of tensors that the optimizer does not get (bing_bert's
// pooler).
//
// Conventions, the same for every family
//   * FLOPs count matrix products only: attention scores and the vocabulary head, but no norms,
//     activations, softmax and look-ups. A multiply-add is 2. Attention is the full s x s square;
//     neither a causal mask nor a window reduces it. A GPT with L layers, hidden h, vocabulary V,
//     sequence s:
//       forward = 24 L s h^2 (1 + s / 6h) + 2 s h V      per sample
//     (Narayanan et al. 2021, equation 3, without the backward and the recomputed pass).
//   * The backward pass costs twice the forward pass; training FLOPs are 3 x forward. Frozen
//     weights have no gradient: 2 x, except for attention scores.
//   * Activations are those that a backward pass without recomputation needs, at 2 bytes each:
//       s h (34 + 5 a s / h) bytes per block and sample  (a heads, ffn 4h, dropout on)
//     (Korthikanti et al. 2022, equation 1); block.h states the changes without dropout, with
//     grouped heads and with gated or expert feed-forwards. The terms in s^2, scores, are counted
//     separately: attention in one kernel keeps none. An estimate: allocator overhead and framework
//     workspaces are left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/provenance.h"
#include "sim/base/units.h"

namespace lambcast {

// Division of a tensor over t tensor-parallel ranks (Shoeybi et al. 2019, section 3; Megatron-LM
// core/tensor_parallel/layers.py). Of a matrix with H output features of W input features each, a
// rank holds H/t x W and 1/t of the bias ("column parallel" in Megatron-LM, which writes y = x A),
// or H x W/t and the whole bias ("row parallel").
enum class TensorSplit {
  replicated,  // whole on every rank: norms, biases after a sum over ranks, positions
  outputs,     // t equal parts of the output features
  inputs,      // t equal parts of the input features
  key_value,   // whole key-value heads per rank, repeated if there are too few
  vocabulary,  // rows of the vocabulary, padded to a multiple of 128 t
};

struct Tensor {
  std::string name;  // name in the framework
  std::int64_t elements = 0;
  int layer = -1;         // index of the repeated block, -1 outside the blocks
  std::size_t group = 0;  // parameter group of the optimizer, of ModelShape::groups
  bool optimized = true;  // false: all-reduced by the engine, but not updated by the optimizer
  bool expert = false;    // each rank of an expert-parallel group holds different experts
  TensorSplit split = TensorSplit::replicated;
  bool frozen = false;  // has no gradient (adapters.h)
};

// An amount per sample as a function of its length s in tokens.
struct PerSample {
  double fixed = 0;
  double per_token = 0;
  double per_token_pair = 0;  // times s^2

  double at(std::int64_t seq_len) const {
    const auto s = static_cast<double>(seq_len);
    return fixed + s * (per_token + s * per_token_pair);
  }
  bool operator==(const PerSample&) const = default;
};

struct Cost {
  PerSample forward_flops;
  PerSample activation_bytes;
  // Additional bytes if attention is not a single kernel: its scores, the scores after dropout, and
  // the mask. Tensor parallelism divides all of them.
  PerSample score_bytes = {};
  // Dropout masks, one byte per element in every number format: those among the activations, which
  // tensor parallelism leaves whole, and those of the scores.
  PerSample mask_bytes = {};
  PerSample score_mask_bytes = {};
  // The part of the activations that tensor parallelism leaves whole on every rank: inputs of norms
  // and matrices, and dropout masks (10 s h of a GPT block). Sequence parallelism divides it too.
  PerSample whole_activation_bytes = {};
  // Inputs of products that are kept only for weight gradients, and the part of them that tensor
  // parallelism leaves whole. They have fewer bits if the products do, and are not kept for frozen
  // weights.
  PerSample product_input_bytes = {};
  PerSample whole_product_input_bytes = {};
  PerSample attention_bytes = {};  // queries, keys, values and context
  PerSample context_bytes = {};    // the context, which is also the projection's input
  PerSample gate_bytes = {};       // each of: gate, gated values, activated gate
  // Inputs and output gradients of the matrices, at 2 bytes per element: the operands of weight
  // gradients that are computed separately from input gradients (32 s h of a GPT block; Qi et al.
  // 2024, table 1).
  PerSample matrix_operand_bytes = {};
  PerSample whole_matrix_operand_bytes = {};  // part that tensor parallelism leaves whole
  // Bytes kept if every second matrix product and all element-wise kernels are recomputed: the
  // block's input, and the outputs of attention and of the kept products. The second number is the
  // part that tensor parallelism leaves whole.
  PerSample alternate_bytes = {};
  PerSample alternate_whole_bytes = {};
};

// Attention whose queries and keys-values come from two vectors per token (models/shape/moe.cc).
struct LatentAttention {
  std::int64_t query_rank = 0, key_rank = 0;  // elements of the two vectors
  std::int64_t rope_size = 0;  // elements with positions in a head's queries and keys
  bool operator==(const LatentAttention&) const = default;
};

// Products that have low-rank adapters (adapters.h).
enum class AdapterTargets { attention, all };
struct Adapters {
  std::int64_t rank = 0;
  AdapterTargets targets = AdapterTargets::attention;
  double frozen_bits = 0;  // bits per element of frozen block matrices; 0: the run's precision

  bool feed_forward() const { return targets == AdapterTargets::all; }
  bool operator==(const Adapters&) const = default;
};

// Equal blocks of a pyramid on images (models/shape/swin.cc).
struct PyramidStage {
  std::int64_t layers = 0;
  std::int64_t hidden = 0, heads = 0, ffn = 0;
  std::int64_t tokens = 0;   // tokens of a sample
  std::int64_t windows = 1;  // windows of a sample; tokens attend only within their window
  bool operator==(const PyramidStage&) const = default;
};

// A k x k convolution with padding on images (models/shape/resnet.cc, vgg.cc). A linear layer after
// the convolutions is a 1 x 1 convolution on one pixel.
struct Convolution {
  std::int64_t kernel = 0, stride = 1;
  std::int64_t in = 0, out = 0;  // channels
  std::int64_t size = 0;         // pixels along an edge of its output
  bool norm = false;             // a batch norm follows
  bool relu = false;             // a ReLU follows the convolution and its norm
  bool shortcut = false;         // before the ReLU a shortcut is added
  bool operator==(const Convolution&) const = default;
};

// The decoder of an encoder-decoder model: its last blocks, which also attend to the encoder's
// tokens.
struct DecoderStack {
  std::int64_t layers = 0;
  double tokens = 1;  // decoder tokens per encoder token; a sample's length counts encoder tokens
  bool operator==(const DecoderStack&) const = default;
};

struct ModelShape {
  std::string name;
  std::string family;
  // For reports and parallel layouts; 0 if the family has no such value.
  std::int64_t layers = 0;  // repeated blocks; encoder and decoder blocks together
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_size = 0;   // elements of a head's queries and keys
  std::int64_t value_size = 0;  // elements of a head's values
  std::optional<LatentAttention> latent;
  std::int64_t window = 0;                           // tokens that some layers look back; 0: all
  std::int64_t window_every = 1, window_layers = 1;  // window_layers of every window_every
  bool causal = false;                               // a token attends to no later token
  bool parallel_block = false;                       // attention next to the feed-forward (block.h)
  std::int64_t norms = 2;      // norms of a block: 2, or 4 with one after each half as well;
                               // in a parallel block 1, or 2 with one for each half
  bool norms_queries = false;  // norms of queries and keys
  bool gated = false;          // the feed-forward has a gate and an up projection
  bool rotary = false;         // queries and keys are rotated by their positions
  bool biased_experts = false;
  std::int64_t ffn = 0;
  std::int64_t vocab = 0;  // rows of the embedding, including padding
  // Width of the embedding and of the head's input, if it is not `hidden` (ALBERT, ELECTRA).
  std::int64_t embedding = 0;
  bool shared_block = false;  // all blocks have the weights of the first one (ALBERT)
  // Distances of tokens whose vectors are multiplied by queries and keys (DeBERTa, bert.cc). 0:
  // none.
  std::int64_t distances = 0;
  // Maximum and default length of a sample in tokens; 0: samples have no length (images).
  std::int64_t max_seq_len = 0;
  std::int64_t default_seq_len = 0;
  // Share of the tokens that the vocabulary head computes; for BERT, the masked tokens.
  double head_share = 1;
  // Whether there are dropout masks after the embedding and in the blocks.
  bool dropout = false;
  // If a forecast does not choose an attention kernel (for instance if the whole model was timed,
  // models/training/price/passage.h), attention runs in one kernel (FlashAttention).
  bool flash_attention = false;
  // Mixture of experts: each token visits `experts_per_token` of `experts`. 0: dense.
  std::int64_t experts = 0;
  std::int64_t experts_per_token = 0;
  std::vector<bool> expert_layers;  // which layers have experts; empty: none
  std::int64_t dense_ffn = 0;       // width in dense layers, if not `ffn`
  std::int64_t shared_ffn = 0;      // total width of the experts that every token visits
  std::int64_t predicted_layers =
      0;  // additional blocks after the last, each with a head; part of `outside`

  // Stages from the largest image to the smallest; the widths above are those of the last stage.
  // Empty: all blocks are equal.
  std::vector<PyramidStage> pyramid;
  std::optional<DecoderStack> decoder;
  std::vector<Convolution>
      convolutions;               // convolutions in the order of the forward pass; may be empty
  std::int64_t patch_values = 0;  // values of an image patch that becomes a token; 0: no patches
  bool drop_path = false;         // drops branches per sample (stochastic depth)

  std::optional<Adapters> adapters;  // all other tensors are frozen
  // Bits per element of the blocks' matrices in a quantized checkpoint. They apply only with
  // adapters (adapters.h). 0: not quantized.
  double quantized_bits = 0;

  // Parameter groups in the optimizer's order. "no_decay" has the one-dimensional tensors (biases
  // and norms), as in Megatron-LM's optimizer groups. BERT has a third group, "position": bing_bert
  // gives the position embeddings to 1-bit optimizers as a separate group with a momentum mask; for
  // plain Adam and LAMB they decay like the others.
  std::vector<std::string> groups;
  std::vector<Tensor> tensors;  // tensors in registration order
  std::vector<Cost> blocks;     // costs, one per layer
  // The part of `blocks` that comes from routed experts, if all are visited equally. Empty: no
  // experts.
  std::vector<Cost> routed;
  // Embedding, stem and head. In token models its FLOPs are those of the head, after the last
  // block.
  Cost outside;
  // The embedding's part of the activations of `outside`: dropout masks. The other part is the
  // head's.
  PerSample embedding_activation_bytes;
  Provenance provenance;  // provenance of the description's numbers
};

const std::string& group_of(const ModelShape& shape, const Tensor& tensor);
std::int64_t embedding_width(const ModelShape& shape);

// Returns whether the model works on images without attention: ResNet, VGG.
bool is_convolutional(const ModelShape& shape);
std::int64_t parameters(const ModelShape& shape);  // elements of all tensors
// Returns the number of elements with gradients, which the engine all-reduces.
std::int64_t trained_parameters(const ModelShape& shape);
// Returns the number of elements that the optimizer updates and 1-bit optimizers compress.
std::int64_t optimized_parameters(const ModelShape& shape);
// Returns the number of elements that one token uses: all except those of experts it does not
// visit.
std::int64_t active_parameters(const ModelShape& shape);

// Returns the number of decoder tokens of a sample with `seq_len` encoder tokens.
std::int64_t decoder_tokens(const DecoderStack& decoder, std::int64_t seq_len);

// Returns whether the tensor is frozen and stored in Adapters::frozen_bits bits per element.
bool is_quantized(const ModelShape& shape, const Tensor& tensor);

std::size_t tensor_count(const ModelShape& shape);
std::size_t optimized_tensor_count(const ModelShape& shape);

struct GroupSize {
  std::string name;
  std::size_t tensors = 0;
  std::int64_t elements = 0;
};
// Returns the optimizer's parameter groups in its order, without empty ones.
std::vector<GroupSize> optimizer_groups(const ModelShape& shape);

// Returns the length of a sample: the requested one, else the default; 0 for images. Throws Error
// (usage) if the model has no length to choose or the request is outside 1 .. max_seq_len.
std::int64_t resolve_seq_len(const ModelShape& shape, std::optional<std::int64_t> requested,
                             const Where& where);

// FLOPs per sample. seq_len is the result of resolve_seq_len(), or shorter in a length curriculum.
Flops forward_flops(const ModelShape& shape, std::int64_t seq_len);
Flops block_forward_flops(const ModelShape& shape, std::int64_t layer, std::int64_t seq_len);
Flops outside_forward_flops(const ModelShape& shape, std::int64_t seq_len);
// Returns 3 x forward: the backward pass computes the gradients of both factors of every product,
// except of frozen weights.
Flops training_flops(const ModelShape& shape, std::int64_t seq_len);

// Returns the bytes that one micro batch keeps from forward to backward on one undivided model,
// with or without scores.
Bytes activation_bytes(const ModelShape& shape, std::int64_t micro_batch, std::int64_t seq_len,
                       bool with_scores, double element_bytes = 2);

}  // namespace lambcast
