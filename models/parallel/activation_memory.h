// Activations that a rank keeps from forward to backward passes, by stage of the pipeline.
//
// Bytes of a GPT layer and micro batch of b sequences, at 2 bytes per element, dropout masks at 1
// (Korthikanti et al. 2022, table 2), on t ranks of tensor parallelism; a heads, ffn 4h:
//   tensor parallel               s b h (10 + 24/t + 5 a s / (h t))
//   and sequence parallel         s b h (34/t      + 5 a s / (h t))
//   recompute selective           without the terms in a s: scores are recomputed
//   recompute full                2 s b h, the layer's input (1/t of it with sequence parallelism),
//                                 and one layer's whole activations while its backward pass runs
//   recompute alternate           the input, and the outputs of attention and every second product
//                                 (block.h), except the last output if blocks are compiled
// Attention in one kernel keeps no scores, so "none" keeps the same as "selective". Other shapes
// follow from the costs of their blocks (models/shape/block.h). Context parallelism divides s by c.
// Further savings, except with recompute alternate (tensors that Transformer Engine and Megatron-LM
// save for backward passes: pytorch/module/linear.py, attention's fp8_tensors;
// core/fusions/fused_bias_swiglu.py):
//   products in 8 or 4 bits       inputs that weight gradients need, and the context for the
//                                 projection's, in that number of bits
//   attention in fp8              queries, keys, values and context in 8 bits
//   gates in one kernel           a gate and the gated values, not the activated gate; or both in 8
//                                 bits (--activation-func-fp8-input-store)
//
// If T tokens of a rank choose k experts each, the experts keep the activations of R = T k load t_e
// rows of 1/t_e of the columns (models/device/expert_time.h). load is the capacity factor, since
// empty places are computed and kept too, or the load of the busiest rank divided by the mean;
// inputs are gathered over the t_e ranks that divide an expert, with or without sequence
// parallelism. If one-hot tensors move tokens to their S = T k load places (DeepSpeed
// moe/sharded_moe.py, GShard), there are also:
//   masks and weights             4 T S: both in 16 bits, operands of the two products
//   outputs of experts            2 S h, needed for the gradient of the weights
// and up to max(6, 4 k) T S while the block computes, one block at a time: forward each choice's
// weights and their sum in fp32 before the sum is cast, backward the gradient of the sum in 16 bits
// and in fp32. `recompute experts` keeps only the input of router and experts, 2 T h, also for
// shared experts (Megatron-LM --recompute-modules moe); blocks without experts keep everything.
// Outside the layers: embedding masks s b h, last norm and head input 4 s b h, logits 4 s b V / t.
// In fp32 all of this is twice as large, except dropout masks and logits.
//
// Each chunk counts the largest number of micro batches that the schedule keeps in flight there
// (peak_held: p - r for 1f1b), without those in the host's memory (activation_offload.h). Left out:
// buffers of collectives, workspaces and allocator overhead.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "models/parallel/activation_offload.h"
#include "models/parallel/parallel_layout.h"
#include "models/parallel/pipeline_schedule.h"
#include "models/parallel/stage_split.h"
#include "models/shape/shape.h"
#include "sim/base/units.h"

namespace lambcast::parallel {

enum class Recompute { none, selective, alternate, full };

const std::vector<std::string>& recompute_names();
std::string_view name_of(Recompute recompute);

// Load of the experts in a run.
struct ExpertLoad {
  double rows = 1;          // computed rows per chosen one: capacity factor or imbalance
  int tp = 0;               // tensor ranks of an expert; 0: as tp
  bool one_hot = false;     // products move tokens to their places
  bool recomputed = false;  // together with the router and the shared experts
};

struct ActivationSetting {
  int tp = 1;
  int cp = 1;
  bool sequence_parallel = false;
  bool fused_attention = false;  // attention runs in one kernel
  double element_bytes = 2;      // bytes per element, 4 in fp32
  double product_bytes = 2;      // bytes per element that products read, at most 2
  double attention_bytes = 2;    // bytes per element of queries, keys, values and context
  bool fused_gates = false;      // the activated gate is recomputed, unneeded tensors are freed
  bool fp8_gates = false;        // inputs of fused gates are kept in 8 bits
  Recompute recompute = Recompute::none;
  // Full recomputation divides the kept inputs over tp even without sequence parallelism
  // (Megatron-LM distribute_saved_activations, DeepSpeed partition_activations).
  bool divides_checkpoints = false;
  ExpertLoad experts = {};
  ActivationOffload offload = {};
  std::int64_t micro_batch = 1;
  std::int64_t seq_len = 1;
};

// Activations of one micro batch in one layer.
struct LayerActivations {
  Bytes kept;             // kept from the layer's forward to its backward pass
  Bytes recomputed;       // added while the layer's passes run: recomputation, or one-hot gating
  Bytes awaiting_weight;  // kept from the input gradient to a separate weight gradient
  Bytes copied;           // part of `kept` that waits in the host's memory
};
LayerActivations layer_activations(const ModelShape& shape, int layer,
                                   const ActivationSetting& setting);

struct StageActivations {
  Bytes kept;        // kept on the GPU by all micro batches in flight, with embedding, head and
                     // copies under way
  Bytes head;        // part of `kept`: last norm, head input and logits of one micro batch
  Bytes recomputed;  // the largest layer of the stage
  Bytes host;        // copied by all micro batches in flight
  Bytes total() const { return kept + recomputed; }
};

// Returns the bytes of one micro batch that a chunk copies to the host, and back.
Bytes copied_activations(const ModelShape& shape, const ChunkContent& content,
                         const ActivationSetting& setting);

// Returns the activations by stage. `contents` are the contents of the pipeline's chunks, by
// position.
std::vector<StageActivations> activation_memory(const ModelShape& shape, const Pipeline& pipeline,
                                                std::span<const ChunkContent> contents,
                                                const ActivationSetting& setting);

}  // namespace lambcast::parallel
