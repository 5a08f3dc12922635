// A model as the rest of lambcast sees it: a list of named parameter tensors and what one sample
// costs, block by block. Nothing else about a network matters to a step forecast.
//
// Why a tensor list and not a parameter count: LAMB has one trust ratio per tensor, 1-bit LAMB one
// scaling coefficient per tensor, 1-bit Adam one compressed all-reduce per parameter group, and the
// engine sums gradients that the optimizer never sees (bing_bert's pooler).
//
// Conventions, the same for every family
//   * FLOPs count matrix products only (attention scores and vocabulary head included; norms,
//     activations, softmax and look-ups not), a multiply-add is 2, attention is the full s x s
//     square (neither a causal mask nor a window takes from it). A GPT with L layers, hidden h,
//     vocabulary V, sequence s:
//       forward = 24 L s h^2 (1 + s / 6h) + 2 s h V      per sample
//     (Narayanan et al. 2021, equation 3, less the backward and the recomputed pass).
//   * The backward pass costs twice the forward pass; training FLOPs are 3 x forward. Frozen
//   weights
//     take no gradient: 2 x, but for attention scores.
//   * Activations are what a backward pass without recomputation keeps, at 2 bytes per element:
//       s h (34 + 5 a s / h) bytes per block and sample  (a heads, ffn 4h, dropout on)
//     (Korthikanti et al. 2022, equation 1); block.h states what changes without dropout, with
//     grouped heads and gated or expert feed-forwards. The terms in s^2, scores, are counted apart:
//     attention in one kernel keeps none. An estimate: allocator overhead and framework workspaces
//     are left out.
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

// How tensor parallelism divides a tensor over its t ranks (Shoeybi et al. 2019, section 3;
// Megatron-LM core/tensor_parallel/layers.py). Of a matrix of H x W, H output features of W input
// features each, a rank holds H/t x W (with a t-th of the bias: "column parallel" there, since it
// writes y = x A) or H x W/t (its bias stays whole: "row parallel").
enum class TensorSplit {
  replicated,  // whole on every rank: norms, biases after a sum over ranks, positions
  outputs,     // t equal parts of the output features
  inputs,      // t equal parts of the input features
  key_value,   // by whole key-value heads, so in no more parts than there are; repeated beyond
  vocabulary,  // by rows of the vocabulary, padded to a multiple of 128 t first
};

struct Tensor {
  std::string name;  // as the framework registers it
  std::int64_t elements = 0;
  int layer = -1;         // index of the repeated block, -1 outside the blocks
  std::size_t group = 0;  // parameter group of the optimizer, of ModelShape::groups
  bool optimized = true;  // false: all-reduced by the engine, but not given to the optimizer
  bool expert = false;    // held once per expert-parallel group, not by every rank
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
  // Added if attention is no single kernel: its scores, their dropout output and the mask, all
  // divided by tensor parallelism.
  PerSample score_bytes = {};
  // The part of these that tensor parallelism leaves whole on every rank (10 s h of a GPT block:
  // inputs of norms and matrices, dropout masks), unless sequence parallelism divides it too.
  PerSample whole_activation_bytes = {};
  // The part of these that some runs keep in another form: inputs of products that only a weight
  // gradient needs, and the whole part of them. Fewer bits if products have them, nothing for
  // frozen ones.
  PerSample product_input_bytes = {};
  PerSample whole_product_input_bytes = {};
  PerSample attention_bytes = {};  // queries, keys, values and context
  PerSample context_bytes = {};    // of these the last, which the projection reads too
  PerSample gate_bytes = {};       // each of: a gate, what is gated, the activated gate
  // Inputs and output gradients of the matrices, at 2 bytes per element: all that a weight gradient
  // computed apart from the input gradient needs (32 s h of a GPT block; Qi et al. 2024, table 1).
  PerSample matrix_operand_bytes = {};
  PerSample whole_matrix_operand_bytes = {};  // of these, what tensor parallelism leaves whole
  // Kept where every second matrix product is computed again, with all that goes by bytes: the
  // block's input, what attention and the products kept put out, and of it what tensor parallelism
  // leaves whole.
  PerSample alternate_bytes = {};
  PerSample alternate_whole_bytes = {};
};

// Attention whose queries and keys-values come from two vectors per token (models/shape/moe.cc).
struct LatentAttention {
  std::int64_t query_rank = 0, key_rank = 0;  // elements of the two
  std::int64_t rope_size = 0;  // of a head's queries and keys, the part with positions
  bool operator==(const LatentAttention&) const = default;
};

// Products with low-rank adapters (adapters.h).
enum class AdapterTargets { attention, all };
struct Adapters {
  std::int64_t rank = 0;
  AdapterTargets targets = AdapterTargets::attention;
  double frozen_bits = 0;  // of each element of the blocks' frozen matrices; 0: those of the run

  bool feed_forward() const { return targets == AdapterTargets::all; }
  bool operator==(const Adapters&) const = default;
};

// Blocks alike of a pyramid on images (models/shape/swin.cc).
struct PyramidStage {
  std::int64_t layers = 0;
  std::int64_t hidden = 0, heads = 0, ffn = 0;
  std::int64_t tokens = 0;   // of a sample
  std::int64_t windows = 1;  // of a sample, whose tokens attend among themselves alone
  bool operator==(const PyramidStage&) const = default;
};

// A convolution of k x k with padding on images (models/shape/resnet.cc, vgg.cc). A linear layer
// behind them is one of 1 x 1 on one pixel.
struct Convolution {
  std::int64_t kernel = 0, stride = 1;
  std::int64_t in = 0, out = 0;  // channels
  std::int64_t size = 0;         // pixels along an edge of its output
  bool norm = false;             // a batch norm follows
  bool relu = false;             // and a ReLU
  bool shortcut = false;         // before the ReLU a shortcut is added
  bool operator==(const Convolution&) const = default;
};

// The decoder of an encoder-decoder: the last blocks, which also attend to the encoder's tokens.
struct DecoderStack {
  std::int64_t layers = 0;
  double tokens = 1;  // of each of the encoder's, whose number is the sample's length
  bool operator==(const DecoderStack&) const = default;
};

struct ModelShape {
  std::string name;
  std::string family;
  // For reports and parallel layouts; 0 where the family has no such thing.
  std::int64_t layers = 0;  // repeated blocks; encoder and decoder blocks together
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_size = 0;   // of queries and keys
  std::int64_t value_size = 0;  // of values
  std::optional<LatentAttention> latent;
  std::int64_t window = 0;                           // tokens that some layers look back; 0: all
  std::int64_t window_every = 1, window_layers = 1;  // of each so many layers, so many do
  bool causal = false;                               // a token attends to none behind it
  bool parallel_block = false;                       // attention next to the feed-forward (block.h)
  std::int64_t norms = 2;  // of a block: 1, or one of each half, of a parallel one; 2, or 4 with
                           // one behind each half, of others
  bool norms_queries = false;  // and keys
  bool gated = false;          // the feed-forward has a gate and an up projection
  bool rotary = false;         // queries and keys are turned by their positions
  bool biased_experts = false;
  std::int64_t ffn = 0;
  std::int64_t vocab = 0;  // rows of the embedding, padding included
  // Longest and usual sample in tokens. 0: a sample has no length to choose (images).
  std::int64_t max_seq_len = 0;
  std::int64_t default_seq_len = 0;
  // Share of the tokens that the vocabulary head sees: BERT's, the masked ones.
  double head_share = 1;
  // Masks of dropout after the embedding and in the blocks.
  bool dropout = false;
  // Attention runs in one kernel (FlashAttention) wherever a forecast chooses none, as where the
  // whole model was timed (models/training/price/passage.h).
  bool flash_attention = false;
  // Mixture of experts: of `experts`, each token visits `experts_per_token`. 0: dense.
  std::int64_t experts = 0;
  std::int64_t experts_per_token = 0;
  std::vector<bool> expert_layers;  // which layers have them; empty: none
  std::int64_t dense_ffn = 0;       // width in the others, where it is not `ffn`
  std::int64_t shared_ffn = 0;      // of the experts that every token visits, together
  std::int64_t predicted_layers =
      0;  // blocks behind the last, counted in `outside`, each with a head

  // From the widest image to the narrowest; widths above are the last one's. Empty: all blocks are
  // alike.
  std::vector<PyramidStage> pyramid;
  std::optional<DecoderStack> decoder;
  std::vector<Convolution> convolutions;  // in the order of the forward pass; empty: there are none
  std::int64_t patch_values = 0;  // of an image, multiplied into a token; 0: rows are looked up
  bool drop_path = false;         // of each branch and sample (stochastic depth)

  std::optional<Adapters> adapters;  // all other tensors are frozen
  // Bits of each element of the blocks' matrices in a quantized checkpoint. They are in effect
  // next to adapters (adapters.h). 0: the checkpoint is not quantized.
  double quantized_bits = 0;

  // Parameter groups in the optimizer's order. "no_decay" holds the one-dimensional tensors (biases
  // and norms), as Megatron-LM's optimizer groups do. BERT has a third, "position": bing_bert gives
  // the position embeddings to 1-bit optimizers as a group of their own, with a momentum mask; for
  // plain Adam and LAMB they decay with the rest.
  std::vector<std::string> groups;
  std::vector<Tensor> tensors;  // in registration order
  std::vector<Cost> blocks;     // one per layer
  // The part of `blocks` that the routed experts cost, all chosen alike; empty: there are none.
  std::vector<Cost> routed;
  // Embedding, stem and head. Token models spend its FLOPs in the head, after the last block.
  Cost outside;
  // The embedding's part of the activations of `outside`: masks. The rest is the head's.
  PerSample embedding_activation_bytes;
  Provenance provenance;  // of the numbers of the description
};

const std::string& group_of(const ModelShape& shape, const Tensor& tensor);

// Whether it sees images and has no attention: ResNet, VGG.
bool is_convolutional(const ModelShape& shape);
std::int64_t parameters(const ModelShape& shape);  // elements of all tensors
// Elements that have gradients: what the engine all-reduces.
std::int64_t trained_parameters(const ModelShape& shape);
// Elements given to the optimizer: what 1-bit optimizers compress.
std::int64_t optimized_parameters(const ModelShape& shape);
// Elements one token passes through: all, less the experts it does not visit.
std::int64_t active_parameters(const ModelShape& shape);

// Tokens of a sample in its decoder, of so many in its encoder.
std::int64_t decoder_tokens(const DecoderStack& decoder, std::int64_t seq_len);

// Whether the tensor is frozen and held in the bits of Adapters::frozen_bits.
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

// The length of a sample: the requested one, else the default. Throws Error (usage) where the model
// has no length to choose or the request is outside 1 .. max_seq_len. Images give 0.
std::int64_t resolve_seq_len(const ModelShape& shape, std::optional<std::int64_t> requested,
                             const Where& where);

// Per sample; seq_len as resolve_seq_len() gives it, or shorter under a length curriculum.
Flops forward_flops(const ModelShape& shape, std::int64_t seq_len);
Flops block_forward_flops(const ModelShape& shape, std::int64_t layer, std::int64_t seq_len);
Flops outside_forward_flops(const ModelShape& shape, std::int64_t seq_len);
// 3 x forward: the backward pass forms the gradient of both factors of every product that are not
// frozen.
Flops training_flops(const ModelShape& shape, std::int64_t seq_len);

// Kept from forward to backward by one micro batch on one undivided model, with scores or without.
Bytes activation_bytes(const ModelShape& shape, std::int64_t micro_batch, std::int64_t seq_len,
                       bool with_scores);

}  // namespace lambcast
