// Sources of the times of kernels among the costs of a forecast: each rate of the GPU, weighted by
// the time that it determines (models/device/gpu_rates.h).
#pragma once

#include "models/device/gpu_rates.h"
#include "models/training/plan/exchange.h"
#include "models/training/plan/framework.h"
#include "models/training/plan/optimizer_cost.h"
#include "models/training/price/cost_source.h"

namespace lambcast {

// Reads the sources of kernel times. Products read a peak, and the share of it that is reached.
void read_rates(const RateTimes& times, const GpuRates& rates, CostSources& sources);

// Names of the costs of products in `format`: their peak, and the share of it that is reached. Half
// precision has no suffix.
std::string peak_name(MatrixFormat format);
std::string share_name(MatrixFormat format);

// Notes the source of an update's kernels if they are neither DeepSpeed's nor fused. It is assumed
// that XLA fuses none of TensorFlow's kernels.
void read_update_kernels(Kernels kernels, FrameworkName framework, const StackSpec& stack,
                         CostSources& sources);

// Returns the source of the times of compression kernels that were not measured.
Provenance compression_kernels_from(Kernels kernels, const Exchange& exchange);

}  // namespace lambcast
