// Lower bound of a pass set by the host, which starts kernels one after another: n kernels of a
// chunk, forward and backward, take at least
//
//   n x framework_launch (models/device/device.h)
//
// While the GPU computes or waits for a collective, the host runs ahead, so the bound matters only
// if it exceeds the time of both passes. CUDA graphs replay all kernels with one launch each, whose
// time is left out (--cuda-graphs true). n counts priced kernels, which a compiled or fused program
// starts; an unfused program starts more. Blocks with experts also read sizes back (expert_plan.h).
#pragma once

#include "models/training/price/block_kernels.h"
#include "models/training/price/pass_price.h"

namespace lambcast {

// Idle time of the GPU while it waits for the host at the experts of one block.
struct HostIdle {
  Duration forward, backward;
};
HostIdle idle_for(const BlockKernels& block, Duration launch);

// Prolongs the computation of a chunk if the host is slower, and adds the difference to `reads`.
void pace_by_host(ChunkPrice& chunk, ChunkReads& reads, const GpuRates& rates, Duration launch);

}  // namespace lambcast
