// Exposed time of a collective that overlaps computation, and the slowdown of that computation,
// whose multiprocessors the collective's kernels occupy.
#pragma once

#include "models/device/gpu_rates.h"
#include "sim/collectives/process_group.h"

namespace lambcast {

Duration beyond(Duration collective, Duration cover);
// Returns the exposed time of a collective split into `chunks` chunks that overlap the parts of a
// product. Only the last chunk is exposed; none is if a rank starts with its own part and gathers
// the others meanwhile.
Duration beyond_chunks(Duration collective, Duration product, int chunks, bool gathers);

// Returns how much the GPU's kernels slow down, as a share of the time of overlapping collectives.
double lost_to_collectives(const ProcessGroup& group, const GpuRates& rates);
Provenance lost_to_collectives_from();
// Returns the time that `kernels` lose to an overlapping `collective`, which takes `share` of the
// GPU while both run: collective share, and at most kernels share / (1 - share) if it outlasts
// them.
Duration lost_beside(Duration collective, Duration kernels, double share);

// Share of the multiprocessors that a token exchange occupies while computation overlaps it: 20 to
// 24 multiprocessors for DeepEP and 16 to 32 for HybridEP, on an H100 or B200. Assumed; chosen from
// this range to fit published steps.
inline constexpr double exchange_share = 0.2;
Provenance exchange_share_from();

}  // namespace lambcast
