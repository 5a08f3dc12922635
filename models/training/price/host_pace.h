// When the GPU waits for the host, which starts kernels one after another, none sooner than it can:
// n kernels of a chunk, forward and backward, take at least
//
//   n x framework_launch (models/device/device.h)
//
// A GPU that computes or waits for a collective lets the host run ahead, so the bound shows only if
// it exceeds the time of both passes. CUDA graphs replay all kernels with one launch each, whose
// time is left out (--cuda-graphs true). The count is that of priced kernels, which a compiled or
// fused program starts; an unfused program starts more. Blocks with experts also read sizes back
// (expert_plan.h).
#pragma once

#include "models/training/price/block_kernels.h"
#include "models/training/price/pass_price.h"

namespace lambcast {

// Idle time of the GPU for the experts of one block.
struct HostIdle {
  Duration forward, backward;
};
HostIdle idle_for(const BlockKernels& block, Duration launch);

// Lengthens what the chunk computes where the host is slower, and notes by how much.
void pace_by_host(ChunkPrice& chunk, ChunkReads& reads, const GpuRates& rates, Duration launch);

}  // namespace lambcast
