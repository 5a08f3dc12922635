// Memory that a rank holds at its peak, part by part.
//
// Per parameter with fp16 (deepspeed/runtime/fp16): weights 2, gradients 2, master weights
// 4, momentum 4, variance 4; ZeRO shards the last three over the ranks (stage 1) and the gradients
// too (stage 2), and holds a bucket of reduce_bucket_size elements, two with overlap_comm.
// Gradients are of the type they add up in; BF16_Optimizer holds them twice, 2 and the fp32 sums 4,
// and shards the rest as ZeRO stage 1 does. 1-bit LAMB adds the fresh variance 4, all 1-bit
// optimizers the worker error (4 per padded element) and server error (4 / n), and temporaries
// inside compressed_allreduce (the momentum before the step, fp32 gradients, packed signs); other
// exchanges keep exchange_state (gradient_exchange.h) and need exchange_workspace as they run
// (exchange_workspace.h).
// States in the host's memory have to fit there, if the cluster states the memory of a node.
// Without a layout, the memory of passes, of unused allocations and of the runtime is that of a
// layout that divides nothing (layout_memory.h).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "models/training/plan/training_plan.h"

namespace lambcast {

// Half the width of the interval, as a share of the peak. Fitted: of the 68 published peaks that
// `validate` replays (BLOOM, zero bubble, torchtitan, Korthikanti et al.) nine in ten lie inside,
// each of the four sources counting alike; what they miss is the allocator's and the libraries'.
inline constexpr double memory_error = 0.09;

struct MemoryForecast {
  Bytes peak;
  Bytes host;  // of a node, by all its ranks: offloaded states
  bool fits = false;
  std::vector<std::pair<std::string, Bytes>> parts;

  Bytes low() const { return peak * (1 - memory_error); }
  Bytes high() const { return peak * (1 + memory_error); }
};

// Whether the hosts hold what is theirs to hold.
bool fits_host(const Cluster& cluster, const MemoryForecast& memory);

MemoryForecast forecast_memory(const TrainingPlan& training);

}  // namespace lambcast
