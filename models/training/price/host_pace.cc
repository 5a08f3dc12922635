#include "models/training/price/host_pace.h"

#include <algorithm>
#include <array>

#include "models/training/price/beside_collectives.h"

namespace lambcast {

HostIdle idle_for(const BlockKernels& block, Duration launch) {
  if (!block.experts) return {};
  const HostTime host = host_time(*block.experts, launch);
  return {std::max(host.forward, host.least_forward - total_time(block.forward)),
          std::max(host.backward, host.least_backward - total_time(block.backward))};
}

void pace_by_host(ChunkPrice& chunk, ChunkReads& reads, const GpuRates& rates, Duration launch) {
  const std::array passes{&chunk.forward, &chunk.input_gradient, &chunk.weight_gradient};
  Duration compute, all;
  for (const PassPrice* pass : passes) {
    compute += pass->compute;
    all += pass->time();
  }
  const Duration start = rates.kernel_start.value;
  if (start == Duration() || compute == Duration()) return;
  reads.paced = beyond(launch.scaled(reads.kernels[Rate::start] / start), all);
  for (PassPrice* pass : passes) pass->compute = pass->compute.scaled(1 + reads.paced / compute);
}

}  // namespace lambcast
