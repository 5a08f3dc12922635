// How long one micro batch takes forward and backward on one GPU, by what was measured of whole
// models or blocks.
//
// In order of preference:
//   1. block times measured by `lambcast profile` for the model's own shape and length;
//   2. a published training curve of the same implementation. For a length or model without one,
//      the curve is read at the same number of tokens and scaled by FLOPs per token; between two
//      lengths the times are mixed linearly;
//   3. training FLOPs over the best rate a measured block of another shape reached;
//   4. training FLOPs over matrix_efficiency * peak.
// Where neither the model's blocks nor the model was measured and the GPU's rates of kernels are
// known, those price it instead (models/training/passage.h).
// A floor holds in all cases: the host must launch the kernels of every block. Where it rules, the
// time is known no better than by a rate.
#pragma once

#include "models/device/compute_interval.h"
#include "models/device/device.h"
#include "models/shape/shape.h"

namespace lambcast {

// A number that a time was made of, as forecasts name it.
struct NumberRead {
  std::string_view name;
  Provenance provenance;
};

struct MicroBatchTime {
  Duration forward;
  Duration backward;
  std::vector<NumberRead> rests_on;  // first "forward_backward": a curve, or how they were found
  bool measured = false;             // blocks of this shape, or this model, were timed
  bool extrapolated = false;         // outside the curve it rests on
  // For its interval: what it rests on, and the doublings to the nearest measured point.
  Basis basis = Basis::rate;
  double micro_batch_doublings = 0, seq_len_doublings = 0;
};

MicroBatchTime micro_batch_time(const Device& device, const ModelShape& model,
                                const std::string& implementation, std::int64_t micro_batch,
                                std::int64_t seq_len);

// How long the host takes to start the kernels of both passes where no program fuses them.
Duration unfused_launches(const Device& device, const ModelShape& model);

// Half the interval of a measured kernel, in logarithms: that of a machine's own figures, and 1.22
// interquartile ranges of its repeats, which hold 90 % of a normal distribution.
double measured_kernel_width(const KernelCurve& kernel, double elements);

}  // namespace lambcast
