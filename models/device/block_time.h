// Kernels of one rank for one transformer block, and for the parts outside the blocks. Each is a
// named piece with its work and its time, so that a step plan can insert collectives and print the
// pieces.
//
// Shapes of a rank, M = micro_batch x seq_len / c tokens, t tensor, c context parallel size, a
// heads of d elements, a_kv of them for keys and values, h hidden, f feed-forward, V vocabulary:
//   query-key-value   (M, (a + 2 a_kv) d / t, h)    projection   (M, h, a d / t)
//   up                (M, f / t, h), 2 f if gated   down         (M, h, f / t)
//   head              (M, V / t, h), for BERT only the masked tokens
// Each has an input gradient (M, in, out) and a weight gradient (out, in, M). All other kernels are
// limited by memory (r, w: 2-byte elements read, written), over M tokens, or M / t under sequence
// parallelism (*):
//   norm*        r w;  backward r r w and the residual's gradient r
//   dropout add* r r w and a byte of mask;  backward r w and the mask; without dropout r r w, none
//   activation   r w over f / t, gated r r w;  backward r r w, gated r r r w w
//   rotary       r w over queries and keys, both passes; their norms, if any, as norm
//   cast (fp8)   2 r, 1 w twice (rows and columns) for each operand that no fused kernel writes:
//                the projection's input, and the output gradient of every product; for attention in
//                fp8, 3 for queries, keys and values, and for the gradient of its output
//   loss         34 bytes per logit of V / t forward and 12 backward as Megatron's cross entropy
//                computes it in fp32; 8 and 4 fused
//   sum of branches   6 bytes over h, in a parallel block: sums the outputs of projection and down,
//                and backward the gradients of their shared input. If compiled, the second
//                product accumulates into the output of the first
// `Fusion` states which of them share a kernel. A parallel block has one dropout add and one norm,
// or a norm for each half: then input gradients are not summed, and each norm adds its own. If a
// norm also follows each half (Gemma 2), it precedes the dropout add.
//
// Collectives between the pieces use BlockPart (attention ends with the projection, before its
// all-reduce or reduce-scatter; feed_forward likewise) and Pass (separate weight gradients, for
// overlap and for zero-bubble pipelines). `Repeated` is the part that a backward pass recomputes
// first. "selective" differs by framework: Megatron-LM repeats the attention core (Korthikanti et
// al. 2022), torchtitan's per-operation mode every second product (of a Llama block's seven: key,
// projection, up) and the kernels limited by memory. A repeated block ends before its last product
// if the checkpoint stops once the backward pass has all it needs (PyTorch's non-reentrant one,
// since 2.1). Blocks without heads are only a feed-forward (models/shape/feed_forward.cc). Windows
// and pyramids of images, and PyTorch's autocast: image_time.h. Low-rank adapters (adapter_time.h)
// accompany frozen products, which have no weight gradient. Latent attention computes queries and
// keys-values in two steps each, (M, r_q, h), (M, a (d + d_r) / t, r_q), (M, r_k + d_r, h), (M, a
// (d + d_v) / t, r_k). Experts replace the feed-forward (expert_time.h). A decoder's block attends
// to the encoder's tokens between attention and feed-forward (cross_attention.h). Left out: the
// host. If it launches kernels too slowly, launches limit a step (device.h, framework_launch).
// Source: NVIDIA Megatron-LM core/tensor_parallel/layers.py, core/transformer; byte counts from the
// tensors that each kernel reads and writes.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "models/device/attention_kernel.h"
#include "models/device/gpu_rates.h"
#include "models/shape/shape.h"

namespace lambcast {

enum class PieceKind { product, attention, memory };
enum class BlockPart { attention, feed_forward, embedding, head };
enum class Pass { forward, input_gradient, weight_gradient, recompute };

std::string_view name_of(PieceKind kind);
std::string_view name_of(BlockPart part);
std::string_view name_of(Pass pass);

struct Piece {
  std::string_view name;
  PieceKind kind = PieceKind::memory;
  BlockPart part = BlockPart::attention;
  Pass pass = Pass::forward;
  Flops flops;
  Bytes bytes;
  Duration duration;
  RateTimes rests_on;
};

// Which elementwise kernels are fused.
enum class Fusion {
  eager,     // none: PyTorch without a compiler
  fused,     // bias + activation, bias + dropout + add: Megatron-LM's jit functions, apex
  compiled,  // norms and casts with their neighbours, a fused loss: Transformer Engine,
             // torch.compile
};
// Parts of a block that a backward pass repeats, from the smallest to the largest.
enum class Repeated {
  nothing,
  attention_core,
  experts,  // experts with router and exchanges, without the attention
  alternate_products,
  until_last_product,
  block
};

// How the outputs of attention for c blocks of keys and values are joined. Costs are in bytes per
// element of the context forward, and of the gradients of queries (q) and of keys and values (kv)
// backward.
//   fused    Transformer Engine. On the last rank, which has whole contexts to join, 6 c - 2
//            forward: r w of the first, r r w of each other. Backward q 6 c - 2; kv, with half
//            blocks except the last, 3 c + 3. Before each pass keys and values are packed, r w. In
//            fp8 17 c + 5, joined in fp32, and 9 c + 10 (pytorch/attention/dot_product_attention/
//            context_parallel.py, AttnFuncWithCPAndKVP2P)
//   eager    tensor by tensor in fp32, with keys and values repeated for every head: 45 c and 18 c
//            (PyTorch torch/distributed/tensor/experimental/_attention.py, _SDPAMerger; torchtitan
//            models/llama/model.py, repeat_kv)
//   traced   as eager, but compiled to one kernel per block: 10 c and 10 (c + 1)
enum class Ring { fused, eager, traced };

const std::vector<std::string>& fusion_names();
std::string_view name_of(Fusion fusion);
std::string_view name_of(Repeated repeated);

// The experts of a block on one rank; expert_time.h states their costs.
struct ExpertWork {
  std::int64_t all = 0, local = 1;  // experts of the block, and on the rank
  std::int64_t ffn = 0;             // columns of an expert on the rank
  std::int64_t shared_ffn = 0;      // width of the experts that every token visits, on the rank
  double tokens = 0;                // tokens of the rank before the exchange
  double sent = 0, received = 0, rows = 0;  // copies of tokens sent, received and computed
  // Experts per token if tokens are sent to their places by one-hot products (expert_time.h); 0:
  // tokens are copied.
  std::int64_t one_hot = 0;
};

struct BlockWork {
  // Sizes of the model.
  std::int64_t hidden = 0, heads = 0, kv_heads = 0, ffn = 0, vocab = 0;
  std::int64_t embedding = 0;  // width of the embedding and of the head's input
  std::int64_t distances = 0;  // ModelShape::distances
  std::int64_t head_size = 0,
               value_size =
                   0;  // elements per head of queries and keys, and of values; 0: hidden / heads
  std::optional<LatentAttention> latent;
  std::int64_t window = 0;  // ModelShape's, as the next two; costs are the mean of all blocks
  std::int64_t window_every = 1, window_layers = 1;
  bool parallel_block = false;    // attention and feed-forward in parallel
  std::int64_t norms = 2;         // ModelShape's
  bool input_is_data = false;     // data has no gradient
  std::int64_t windows = 1;       // windows of a sample, which limit attention (image_time.h)
  std::int64_t patch_values = 0;  // values of an image patch that becomes a token; 0: no patches
  bool drop_path = false;         // a factor for each branch and sample
  bool gated = false, causal = false, rotary = false;
  std::int64_t encoder_tokens = 0;  // tokens per sample to which a decoder's block attends too
  bool norms_queries = false, biased_experts = false;
  double head_share = 1;              // share of the tokens that the head computes
  std::optional<Adapters> adapters;   // adapters on frozen weights
  std::optional<ExpertWork> experts;  // experts that replace the feed-forward
  // Sizes of the run.
  std::int64_t micro_batch = 1, seq_len = 0;
  bool dropout = false;
  int tensor_parallel = 1, context_parallel = 1;
  bool sequence_parallel = false;
  MatrixFormat format = MatrixFormat::half;  // format of the blocks' weights; the head's is half
  AttentionKernel attention = AttentionKernel::flash2;
  bool fp8_attention = false;  // attention reads 8 bits; else 16, for any block format
  Fusion fusion = Fusion::fused;
  bool eager_loss = false;  // the loss is not compiled with the other kernels
  Repeated repeated = Repeated::nothing;
  Ring ring = Ring::fused;
  bool exchanges_heads = false;  // context parallelism: all tokens, heads / c
  // Queries, keys and values are separate products, and so are both halves of a gated feed-forward.
  // Their input gradients are summed: 8 and 6 bytes per element.
  bool separate_products = false;
  bool autocast = false;        // image_time.h
  bool fp32_gradients = false;  // products add weight gradients to fp32 buffers
};

// Returns the work of a model's block, for the families of models/shape.
BlockWork block_work(const ModelShape& model, std::int64_t micro_batch, std::int64_t seq_len);

bool has_compiled_loss(const BlockWork& work);
// Returns whether a recomputed block may end before its last product. A norm after that product
// needs its output.
bool ends_before_last_product(const BlockWork& work);

// Return the pieces in order of execution. Heads and widths that tensor parallelism does not divide
// are rounded up.
std::vector<Piece> block_forward(const BlockWork& work, const GpuRates& rates);
std::vector<Piece> block_backward(const BlockWork& work, const GpuRates& rates);
std::vector<Piece> embedding_forward(const BlockWork& work, const GpuRates& rates);
std::vector<Piece> embedding_backward(const BlockWork& work, const GpuRates& rates);
// Return the pieces of the last norm, output product and loss.
std::vector<Piece> head_forward(const BlockWork& work, const GpuRates& rates);
std::vector<Piece> head_backward(const BlockWork& work, const GpuRates& rates);

// Returns the time of all pieces, split by the rates that determine it.
RateTimes rests_on(std::span<const Piece> pieces);
// Returns the time of all pieces, or only of one part or pass.
Duration total_time(std::span<const Piece> pieces, std::optional<BlockPart> part = {},
                    std::optional<Pass> pass = {});

}  // namespace lambcast
