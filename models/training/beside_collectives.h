// What computation loses where a collective runs beside it: its kernels take multiprocessors.
#pragma once

#include "models/device/gpu_rates.h"
#include "sim/collectives/process_group.h"

namespace lambcast {

// Of the time that a collective hides behind kernels of the GPU.
double lost_to_collectives(const ProcessGroup& group, const GpuRates& rates);

}  // namespace lambcast
