// Exposed time of a collective that overlaps computation, and the slowdown of that computation,
// whose multiprocessors the collective's kernels occupy.
#pragma once

#include "models/device/gpu_rates.h"
#include "sim/collectives/process_group.h"

namespace lambcast {

Duration beyond(Duration collective, Duration cover);
// Returns the exposed time of a collective in `chunks` chunks behind the parts of a product: all
// except the last chunk hide. The last hides too if a rank begins with its own part and gathers the
// others meanwhile.
Duration beyond_chunks(Duration collective, Duration product, int chunks, bool gathers);

// Returns the share of hidden collective time by which the GPU's kernels are slowed.
double lost_to_collectives(const ProcessGroup& group, const GpuRates& rates);
Provenance lost_to_collectives_from();
// Returns the time that `kernels` lose to `collective`, which takes `share` of the GPU while both
// run: share of the collective, and at most kernels share / (1 - share), where it outlasts them.
Duration lost_beside(Duration collective, Duration kernels, double share);

// The share of the multiprocessors that an exchange of tokens keeps while computation runs next to
// it: 20 to 24 for DeepEP and 16 to 32 for HybridEP of an H100's or B200's. Assumed, chosen among
// these with published steps in view.
inline constexpr double exchange_share = 0.2;
Provenance exchange_share_from();

}  // namespace lambcast
