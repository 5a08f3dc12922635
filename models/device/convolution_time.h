// Time of a convolutional net forward and backward on one GPU, kernel by kernel.
//
// Each convolution is an implicit matrix product (matrix_product.h) whose operands are read once.
// For b images, c channels in, o out, kernels of k x k and p x p output pixels:
//
//   pass             m       n  k
//   forward          b p^2   o  k^2 c
//   input gradient   b p^2   c  k^2 o   (not for the net's first convolution)
//   weight gradient  k^2 c   o  b p^2
//
//   time = max(compute of the product, (input + output + weights) e / memory) + kernel_start
//
// with e bytes per element. In fp32 outside the matrix units, cuDNN multiplies 3 x 3 kernels of
// stride 1 by Winograd's method (Lavin and Gray 2016), so its time is the minimum of the product
// and
//
//   F(2x2)   product / 2.25, tiles of 4 x 4 that one kernel computes and multiplies
//   F(4x4)   36 products of (b ceil(p/4)^2, o, c); transformed inputs and outputs, 2.25 of each
//            element and 4 of each weight, are written and read
//
// Between convolutions tensors go through memory. For N elements of a convolution's output:
//
//                 separate                      fused (one kernel of norm, sum and ReLU)
//   batch norm    3 N forward, 5 N backward     3 N and 5 N
//   ReLU          2 N and 3 N                   in the norm: N / 16 of mask
//   shortcut      3 N and 3 N                   N and N
//   max pooling, average pooling and losses are left out
//
// The matrix units need channels last. In a framework that keeps channels first, each input of a
// convolution is transposed before it (read and written), in 16 bits: its operands, and both of the
// weight gradient.
//
//   program       norm, sum, ReLU   channels   source
//   nvidia        fused             last       MLPerf's MXNet: NHWC, BatchNormAddRelu
//   jax           fused             last       XLA; flax.linen.Conv
//   others        separate          first      torchvision, TensorFlow 1, Paddle: NCHW by default
//
// Validation: convolutions of DeepBench on a V100 (validate/compute/convolutions_test.cc);
// ResNet-50 by MLPerf on GPUs whose curve is left out (compute_test.cc), and by other programs
// (validate/program).
//
// Kind: assumed; each operation moves the tensors that it must read and write. Left out: input
// pipelines, which keep a GPU waiting if the hosts decode images more slowly than it trains.
#pragma once

#include <string_view>

#include "models/device/gpu_rates.h"
#include "models/shape/shape.h"

namespace lambcast {

struct ConvolutionRun {
  MatrixFormat format = MatrixFormat::half;
  bool fused = false;
  bool channels_last = false;
};

// Returns how the program with this name runs a net.
ConvolutionRun convolution_run(std::string_view program, MatrixFormat format);

enum class ConvolutionPass { forward, input_gradient, weight_gradient };

// Returns the cost of one call, with channels last.
KernelCost convolution_cost(const Convolution& convolution, std::int64_t images,
                            ConvolutionPass pass, MatrixFormat format, const GpuRates& rates);

struct ConvolutionTimes {
  KernelCost forward, backward;
  Duration both() const { return forward.duration + backward.duration; }
};

// `shape` must have convolutions.
ConvolutionTimes convolution_times(const ModelShape& shape, std::int64_t images,
                                   const ConvolutionRun& run, const GpuRates& rates);

}  // namespace lambcast
