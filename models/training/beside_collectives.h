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

}  // namespace lambcast
