// Memory of a rank at its peak, by part: states, counted here by framework and sharding
// (models/parallel/state_memory.h), and the memory of passes and runtime (pass_memory.h). A run
// without a layout is one stage whose ranks hold the whole model.
//
//   weights, gradients   16 bits; fp32 for sums of gradients, or if training is in fp32
//   gradient_sums        fp32 sums in addition to 16-bit gradients (DeepSpeed's BF16_Optimizer)
//   gradient_copies      the optimizer's fp32 copy of 16-bit gradients (Megatron), or its shard of
//                        gradients that are summed unsharded (FSDP2)
//   gradient_buckets     of DeepSpeed's ZeRO: reduce_bucket_size elements, twice with overlap_comm
//   master_weights, momentum, variance    fp32; other states are optimizer_states
//   fresh_variance, worker_error, server_error, temporaries    of 1-bit optimizers: fp32 of padded
//                        elements, their n-th part, and what compressed_allreduce needs (the
//                        momentum before the step, fp32 gradients, packed signs)
//   exchange_state, exchange_workspace    of other exchanges (exchange_state.h,
//                        exchange_workspace.h)
//   second_copy          of ZeRO++'s hpZ
//
// Frozen weights have the format of their products, also 8 or 4 bits (Transformer Engine,
// fp8_model_init). FSDP2 shards the optimizer's own fp32 weights, which are then `weights`. States
// in the host's memory must fit there, if the cluster states the memory of a node.
//
// Sources: DeepSpeed runtime/{fp16,bf16_optimizer,zero}; Megatron-LM core/optimizer; FSDP2.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "models/training/plan/training_plan.h"

namespace lambcast {

// Half-width of the interval, as a share of the peak. Fitted: nine in ten of the 68 published peaks
// that `validate` replays (BLOOM, zero bubble, torchtitan, Korthikanti et al.) are inside, with
// equal weight for the four sources. The difference is mostly memory of the allocator and the
// libraries.
inline constexpr double memory_error = 0.09;

struct MemoryForecast {
  Bytes peak;
  Bytes states;  // the part of the peak that is not memory of the passes or the runtime
  Bytes host;    // offloaded states and activations of all ranks of a node
  bool fits = false;
  std::vector<std::pair<std::string, Bytes>> parts;

  Bytes low() const { return peak * (1 - memory_error); }
  Bytes high() const { return peak * (1 + memory_error); }
};

// Whether the offloaded states and activations fit the host memory of a node.
bool fits_host(const Cluster& cluster, const MemoryForecast& memory);

// Returns the memory of the rank that needs most, or of one rank per pipeline stage.
MemoryForecast forecast_memory(const TrainingPlan& training);
std::vector<MemoryForecast> forecast_stage_memory(const TrainingPlan& training);

}  // namespace lambcast
