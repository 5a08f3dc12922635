// Time of one micro batch forward and backward on one GPU, from measurements of whole models or
// blocks.
//
// In order of preference:
//   1. without rates of kernels: times of the model's own block by `lambcast profile`, same length;
//   2. a training curve of the same shape by the same program. For a length without one, the curve
//      is read at the same number of tokens and scaled by FLOPs per token; between two lengths the
//      times are interpolated linearly;
//   3. a curve of a model with the same blocks, scaled by FLOPs: the number of blocks differs, or
//      the vocabulary;
//   4. a curve of the same shape by another program;
//   5. a curve of a model without a preset that has this model's name, the only information about
//      its shape;
//   6. a curve of another shape, scaled by FLOPs;
//   7. training FLOPs over the highest rate that a measured block of another shape reached;
//   8. training FLOPs over matrix_efficiency * peak.
// A curve of a convolutional net by another program, or of another shape or number format, is
// scaled by the times of the kernels (convolution_time.h) instead of FLOPs. Without a curve, these
// times are used directly. Both need the GPU's rates; without them, by 7 and 8 the net takes at
// least the time of nine passes over its activations at the copy bandwidth.
//
// A curve belongs to the shape of the preset that it names (models/shape/likeness.h): a renamed
// copy of a preset matches it, a changed preset does not. If neither the model nor its blocks were
// measured and the GPU's rates of kernels are known, they price the model instead
// (models/training/price/passage.h). A lower bound applies in all cases: the host must launch the
// kernels of every block. If it is larger, the time is no more certain than one from a rate.
#pragma once

#include "models/device/compute_interval.h"
#include "models/device/device.h"
#include "models/shape/shape.h"

namespace lambcast {

// A number that entered a time, with its name in forecasts.
struct NumberRead {
  std::string_view name;
  Provenance provenance;
};

struct MicroBatchTime {
  Duration forward;
  Duration backward;
  std::vector<NumberRead> rests_on;  // first "forward_backward": a curve, or a method
  bool measured = false;             // this program timed this shape or its blocks
  bool extrapolated = false;         // outside the range of the curve used
  // Inputs of the interval: the basis, and the doublings to the nearest measured point.
  Basis basis = Basis::rate;
  double micro_batch_doublings = 0, seq_len_doublings = 0;
};

// `format` affects only the products of a convolutional net; all other times are those of half
// precision.
MicroBatchTime micro_batch_time(const Device& device, const ModelShape& model,
                                const std::string& implementation, std::int64_t micro_batch,
                                std::int64_t seq_len, MatrixFormat format = MatrixFormat::half);

// Returns whether the curve belongs to this shape, or to a shape with the same blocks.
bool is_curve_of(const TrainingCurve& curve, const ModelShape& model);

// Returns how long the host takes to start the kernels of both passes if the program does not fuse
// them.
Duration unfused_launches(const Device& device, const ModelShape& model);

// Returns the half width of a measured kernel, in logarithms. It combines the width of a machine's
// own measurements and 1.22 interquartile ranges of the repeats (90 % of a normal distribution).
double measured_kernel_width(const KernelCurve& kernel, double elements);

}  // namespace lambcast
