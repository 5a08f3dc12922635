#include "models/device/convolution_time.h"

#include <catch2/catch.hpp>

#include "models/device/device.h"
#include "models/shape/load.h"

namespace lambcast {
namespace {

// A GPU with 100 multiprocessors, 100 TFLOP/s in 16 bits, 10 TFLOP/s outside the matrix units, 1
// TB/s, and kernels that start in no time.
GpuRates round_numbers() {
  GpuRates rates;
  rates.device = "round";
  rates.compute_capability = generation::volta;
  rates.multiprocessors = 100;
  rates.matrix[0] = {{FlopRate(10e12), {}}, {1, {}}};
  rates.matrix[1] = {{FlopRate(100e12), {}}, {1, {}}};
  rates.peak_vector = {FlopRate(10e12), {}};
  rates.memory = {Bandwidth(1e12), {}};
  return rates;
}

double us(const Convolution& of, ConvolutionPass pass, MatrixFormat format,
          Bandwidth memory = Bandwidth(1e12)) {
  GpuRates rates = round_numbers();
  rates.memory.value = memory;
  return convolution_cost(of, 32, pass, format, rates).duration.us();
}

TEST_CASE("convolution: with slow memory it takes the time of its tensors") {
  const Bandwidth slow(1e10);
  const Convolution thin{.kernel = 1, .in = 8, .out = 8, .size = 112};
  const double elements = 32. * 8 * 112 * 112, weights = 64;
  for (const ConvolutionPass pass : {ConvolutionPass::forward, ConvolutionPass::input_gradient})
    CHECK(us(thin, pass, MatrixFormat::half, slow) ==
          Approx(2 * (2 * elements + weights) / 1e10 * 1e6));
  // A 1 x 1 kernel with a stride skips pixels of the input, but its input gradient is written for
  // all pixels.
  const Convolution strided{.kernel = 1, .stride = 2, .in = 8, .out = 8, .size = 56};
  const double skipped = elements / 4;
  CHECK(us(strided, ConvolutionPass::forward, MatrixFormat::half, slow) ==
        Approx(2 * (2 * skipped + weights) / 1e10 * 1e6));
  CHECK(us(strided, ConvolutionPass::input_gradient, MatrixFormat::half, slow) ==
        Approx(2 * (elements + skipped + weights) / 1e10 * 1e6));
}

TEST_CASE("convolution: all passes of one convolution have the same FLOPs") {
  const Convolution of{.kernel = 3, .in = 64, .out = 256, .size = 14};
  const double flops = 2. * 32 * 14 * 14 * 9 * 64 * 256;
  for (const ConvolutionPass pass : {ConvolutionPass::forward, ConvolutionPass::input_gradient,
                                     ConvolutionPass::weight_gradient})
    CHECK(convolution_cost(of, 32, pass, MatrixFormat::half, round_numbers()).flops.value() ==
          flops);
}

TEST_CASE(
    "convolution: Winograd's method needs fewer multiplications, only in fp32 and for 3 x 3") {
  const Convolution three{.kernel = 3, .in = 256, .out = 256, .size = 28};
  Convolution strided = three;
  strided.stride = 2;
  const double direct = us(strided, ConvolutionPass::forward, MatrixFormat::single);
  const double winograd = us(three, ConvolutionPass::forward, MatrixFormat::single);
  CHECK(winograd < direct / 2.2);
  CHECK(winograd > direct / 4);
  CHECK(us(three, ConvolutionPass::forward, MatrixFormat::half) ==
        Approx(us(strided, ConvolutionPass::forward, MatrixFormat::half)).epsilon(0.01));
}

// The net has 2 images of 4 x 4 pixels and 16 channels: N = 512 elements of 2 bytes.
TEST_CASE("convolution: norms, sums and ReLUs move the bytes stated in the header") {
  ModelShape net;
  net.convolutions = {
      {.kernel = 1, .in = 16, .out = 16, .size = 4, .norm = true, .relu = true, .shortcut = true}};
  const auto bytes = [&](const ConvolutionRun& run) {
    const ConvolutionTimes times = convolution_times(net, 2, run, round_numbers());
    const auto only = [&](ConvolutionPass pass) {
      return convolution_cost(net.convolutions[0], 2, pass, run.format, round_numbers()).bytes;
    };
    // The first convolution has no input gradient.
    return std::pair((times.forward.bytes - only(ConvolutionPass::forward)).value(),
                     (times.backward.bytes - only(ConvolutionPass::weight_gradient)).value());
  };
  const double n = 512 * 2;
  CHECK(bytes({.fused = true, .channels_last = true}) ==
        std::pair((4 + 1 / 16.) * n, (6 + 1 / 16.) * n));
  CHECK(bytes({.channels_last = true}) == std::pair(8 * n, 11 * n));
  CHECK(bytes({}) == std::pair(10 * n, 15 * n));  // input; input and output gradient
  // In fp32 no transposes are needed for channels first.
  CHECK(bytes({.format = MatrixFormat::single}) == std::pair(16 * n, 22 * n));
}

TEST_CASE("convolution: more images, channels or pixels never take less time") {
  for (const char* device : {"v100-16g", "a100-80g"}) {
    const GpuRates rates = load_device(device).rates.value();
    for (const MatrixFormat format : {MatrixFormat::single, MatrixFormat::half})
      for (const ConvolutionPass pass : {ConvolutionPass::forward, ConvolutionPass::input_gradient,
                                         ConvolutionPass::weight_gradient})
        for (const std::int64_t kernel : {1, 3, 7}) {
          const auto time = [&](std::int64_t in, std::int64_t size, std::int64_t images) {
            const Convolution of{.kernel = kernel, .in = in, .out = 128, .size = size};
            return convolution_cost(of, images, pass, format, rates).duration;
          };
          CHECK(time(64, 0, 32) == Duration());
          Duration channels, pixels, images;
          for (std::int64_t step = 1; step < 300; step += 23) {
            CHECK(time(step, 28, 32) >= channels);
            CHECK(time(64, step, 4) >= pixels);
            CHECK(time(64, 28, step) >= images);
            channels = time(step, 28, 32), pixels = time(64, step, 4), images = time(64, 28, step);
          }
        }
  }
}

TEST_CASE("convolution: a net takes longer with separate kernels, and still longer in fp32") {
  for (const char* device : {"v100-16g", "t4", "a100-80g", "h100"}) {
    const GpuRates rates = load_device(device).rates.value();
    for (const char* net : {"resnet18", "resnet50", "vgg16"}) {
      INFO(device << ", " << net);
      const ModelShape& shape = model_preset(net);
      const auto time = [&](const char* program, MatrixFormat format) {
        return convolution_times(shape, 64, convolution_run(program, format), rates).both();
      };
      CHECK(time("nvidia", MatrixFormat::half) < time("pytorch", MatrixFormat::half));
      CHECK(time("pytorch", MatrixFormat::half) < time("pytorch", MatrixFormat::single));
    }
  }
}

}  // namespace
}  // namespace lambcast
