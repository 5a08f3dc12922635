// Memory of a rank at its peak, by part.
//
// Bytes per parameter with fp16 (deepspeed/runtime/fp16): weights 2, gradients 2, master weights 4,
// momentum 4, variance 4. ZeRO shards the last three over the ranks (stage 1) and the gradients too
// (stage 2), and has a bucket of reduce_bucket_size elements, two with overlap_comm. Gradients have
// the type of their sums; BF16_Optimizer holds them twice (2, and the fp32 sums 4) and shards like
// ZeRO stage 1. 1-bit LAMB adds the fresh variance 4. All 1-bit optimizers add the worker error (4
// per padded element), the server error (4 / n), and temporaries inside compressed_allreduce (the
// momentum before the step, fp32 gradients, packed signs). Other exchanges keep exchange_state
// (gradient_exchange.h) and temporarily need exchange_workspace (exchange_workspace.h). States in
// the host's memory must fit there, if the cluster states the memory of a node. Without a layout,
// the memory of passes, of unused allocations and of the runtime is that of a layout that divides
// nothing (layout_memory.h).
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
  Bytes host;  // offloaded states of all ranks of a node
  bool fits = false;
  std::vector<std::pair<std::string, Bytes>> parts;

  Bytes low() const { return peak * (1 - memory_error); }
  Bytes high() const { return peak * (1 + memory_error); }
};

// Whether the offloaded states fit the host memory of a node.
bool fits_host(const Cluster& cluster, const MemoryForecast& memory);

MemoryForecast forecast_memory(const TrainingPlan& training);

}  // namespace lambcast
