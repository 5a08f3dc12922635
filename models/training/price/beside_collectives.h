// What a collective lasts beyond the computation it runs beside, and what computation loses where
// it does: its kernels take multiprocessors.
#pragma once

#include "models/device/gpu_rates.h"
#include "sim/collectives/process_group.h"

namespace lambcast {

Duration beyond(Duration collective, Duration cover);
// Of a collective in so many chunks behind as many parts of a product: all but the last hide, and
// that too where a rank begins with its own part and gathers the others meanwhile.
Duration beyond_chunks(Duration collective, Duration product, int chunks, bool gathers);

// Of the time that a collective hides behind kernels of the GPU.
double lost_to_collectives(const ProcessGroup& group, const GpuRates& rates);
Provenance lost_to_collectives_from();

// The share of the multiprocessors that an exchange of tokens keeps while computation runs next to
// it: 20 to 24 for DeepEP and 16 to 32 for HybridEP of an H100's or B200's. Assumed, chosen among
// these with published steps in view.
inline constexpr double exchange_share = 0.2;
Provenance exchange_share_from();

}  // namespace lambcast
