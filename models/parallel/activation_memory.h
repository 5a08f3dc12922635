// Activations that a rank keeps from forward to backward passes, by stage of the pipeline.
//
// Bytes of a GPT layer and micro batch of b sequences, at 2 bytes per element, dropout masks at 1
// (Korthikanti et al. 2022, table 2), on t ranks of tensor parallelism; a heads, ffn 4h:
//   tensor parallel               s b h (10 + 24/t + 5 a s / (h t))
//   and sequence parallel         s b h (34/t      + 5 a s / (h t))
//   recompute selective           without the terms in a s: scores are computed again
//   recompute full                2 s b h, the layer's input (1/t of it with sequence parallelism),
//                                 and one layer's whole activations while its backward pass runs
//   recompute alternate           the input, and what attention and every second matrix put out
//                                 (block.h), the last's aside where blocks are compiled
// Attention in one kernel keeps no scores, so that "none" holds what "selective" does. Other shapes
// follow from their blocks' costs (models/shape/block.h). Context parallelism divides s by c.
// Besides (what Transformer Engine and Megatron-LM save for backward passes: pytorch/module/
// linear.py, attention's fp8_tensors; core/fusions/fused_bias_swiglu.py), recompute alternate
// aside:
//   products in 8 or 4 bits       inputs that weight gradients need, and the context for the
//                                 projection's, in that many
//   attention in fp8              queries, keys, values and context in 8
//   gates in one kernel           a gate and what is gated, not the activated gate; or both in 8
//                                 (--activation-func-fp8-input-store)
//
// Experts that T tokens of a rank choose k of keep what R = T k load t_e rows of t_e-th columns do
// (models/device/expert_time.h): load is the capacity factor, since empty places are computed and
// kept too, or what the fullest rank gets over the mean; inputs are gathered over the t_e ranks
// that divide an expert, sequence parallelism or not. Where one-hot tensors carry S = T k load
// tokens to their places (DeepSpeed moe/sharded_moe.py, GShard):
//   masks and weights             4 T S: both in 16 bits, operands of the two products
//   what experts put out          2 S h, of which the weights take their gradient
// and while the block computes, of which one does at a time, up to max(6, 4 k) T S: forward each
// choice's weights and their sum in fp32 before the sum is cast, backward the gradient of the sum
// in 16 bits and in fp32. `recompute experts` keeps the input of router and experts, 2 T h, instead
// of all of it, shared experts included (Megatron-LM --recompute-modules moe); blocks without
// experts keep everything. Outside the layers: embedding masks s b h, last norm and head input 4 s
// b h, logits 4 s b V / t.
//
// Each chunk counts as many micro batches as the schedule keeps in flight there at the fullest
// moment (peak_held: p - r for 1f1b). Left out: buffers of collectives, workspaces and what the
// allocator wastes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "models/parallel/parallel_layout.h"
#include "models/parallel/pipeline_schedule.h"
#include "models/parallel/stage_split.h"
#include "models/shape/shape.h"
#include "sim/base/units.h"

namespace lambcast::parallel {

enum class Recompute { none, selective, alternate, full };

const std::vector<std::string>& recompute_names();
std::string_view name_of(Recompute recompute);

// How a run loads the experts that tokens choose.
struct ExpertLoad {
  double rows = 1;          // computed on for each one chosen: capacity factor, or imbalance
  int tp = 0;               // inside an expert; 0: as tp
  bool one_hot = false;     // products carry tokens to their places
  bool recomputed = false;  // with their router and those that every token visits
};

struct ActivationSetting {
  int tp = 1;
  int cp = 1;
  bool sequence_parallel = false;
  bool fused_attention = false;  // in one kernel
  double product_bytes = 2;      // of an element that products read
  double attention_bytes = 2;    // of queries, keys, values and context, kept for attention
  bool fused_gates = false;      // the activated gate is formed again, what nobody reads let go
  bool fp8_gates = false;        // and its inputs kept in 8 bits
  Recompute recompute = Recompute::none;
  // Full recomputation divides the inputs it keeps over tp even without sequence parallelism
  // (Megatron-LM distribute_saved_activations, DeepSpeed partition_activations).
  bool divides_checkpoints = false;
  ExpertLoad experts = {};
  std::int64_t micro_batch = 1;
  std::int64_t seq_len = 1;
};

// One micro batch on one layer.
struct LayerActivations {
  Bytes kept;             // from its forward to its backward pass
  Bytes recomputed;       // added while its passes run: recomputation, or one-hot gating
  Bytes awaiting_weight;  // from the gradient of its input to that of its weights, if apart
};
LayerActivations layer_activations(const ModelShape& shape, int layer,
                                   const ActivationSetting& setting);

struct StageActivations {
  Bytes kept;        // by all micro batches in flight, embedding and head included
  Bytes head;        // of these: last norm, head input and logits of one micro batch
  Bytes recomputed;  // the largest layer of the stage
  Bytes total() const { return kept + recomputed; }
};

// By stage; `contents` by position, for the pipeline.
std::vector<StageActivations> activation_memory(const ModelShape& shape, const Pipeline& pipeline,
                                                std::span<const ChunkContent> contents,
                                                const ActivationSetting& setting);

}  // namespace lambcast::parallel
