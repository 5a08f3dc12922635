// How long one micro batch takes forward and backward on one GPU, by what was measured of whole
// models or blocks.
//
// In order of preference:
//   1. without rates of kernels: times of the model's own block by `lambcast profile`, same length;
//   2. a training curve of the same shape by the same program. For a length without one, the curve
//      is read at the same number of tokens and scaled by FLOPs per token; between two lengths the
//      times are mixed linearly;
//   3. a curve of a model with the same blocks, scaled by FLOPs: the number of blocks differs, or
//      the vocabulary;
//   4. a curve of the same shape by another program;
//   5. a curve of a model that does not ship and has this model's name, which is all that is known
//      of its shape;
//   6. a curve of another shape, scaled by FLOPs;
//   7. training FLOPs over the best rate a measured block of another shape reached;
//   8. training FLOPs over matrix_efficiency * peak.
// A curve of a convolutional net, of another program, shape or number format, is scaled by the
// times of the kernels (convolution_time.h) instead of FLOPs, and without a curve these times
// stand, if the GPU's rates are known. If they are not, the net takes at least the time of nine
// passes over its activations at the copy bandwidth by 7 and 8. A curve belongs to the shape of the
// preset that it names (models/shape/likeness.h), so a renamed copy of a preset finds it and a
// changed preset does not. Where neither the model's blocks nor the model was measured and the
// GPU's rates of kernels are known, those price it instead (models/training/price/passage.h). A
// floor holds in all cases: the host must launch the kernels of every block. Where it rules, the
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
  bool measured = false;             // this shape, or its blocks, were timed by this program
  bool extrapolated = false;         // outside the curve it rests on
  // For its interval: what it rests on, and the doublings to the nearest measured point.
  Basis basis = Basis::rate;
  double micro_batch_doublings = 0, seq_len_doublings = 0;
};

// `format`: of the products of a convolutional net. All other times are those of half precision.
MicroBatchTime micro_batch_time(const Device& device, const ModelShape& model,
                                const std::string& implementation, std::int64_t micro_batch,
                                std::int64_t seq_len, MatrixFormat format = MatrixFormat::half);

// Whether the curve is of this shape, or of one with the same blocks.
bool is_curve_of(const TrainingCurve& curve, const ModelShape& model);

// How long the host takes to start the kernels of both passes where no program fuses them.
Duration unfused_launches(const Device& device, const ModelShape& model);

// Half the interval of a measured kernel, in logarithms: that of a machine's own figures, and 1.22
// interquartile ranges of its repeats, which hold 90 % of a normal distribution.
double measured_kernel_width(const KernelCurve& kernel, double elements);

}  // namespace lambcast
