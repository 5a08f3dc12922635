#include "models/device/convolution_time.h"

#include <algorithm>

#include "models/device/matrix_product.h"

namespace lambcast {
namespace {

constexpr double saved_by_2x2 = 36 / 16.0;            // products of 3 x 3 over those of a tile
constexpr std::int64_t tile_edge = 4, products = 36;  // tiles and products of F(4x4)
// Share of a product's rate that a convolution reaches outside the matrix units, from DeepBench's
// convolutions on a V100 (validate/compute/convolutions_test.cc). In the matrix units, products and
// convolutions reach the same rate.
constexpr double share_outside = 0.8;
constexpr double widened_pixels = 36 / 16.0, widened_weights = 36 / 9.0;

double square(std::int64_t size) { return static_cast<double>(size * size); }

// Sizes of the tensors of one convolution, in elements.
struct Tensors {
  double input, output, weights;
  // Elements of the input that are read: a 1 x 1 kernel with a stride skips pixels.
  double read_input;
};

Tensors tensors_of(const Convolution& of, std::int64_t images) {
  const auto channels_in = static_cast<double>(images * of.in);
  const double input = channels_in * square(of.size * of.stride);
  return {input, static_cast<double>(images * of.out) * square(of.size),
          square(of.kernel) * static_cast<double>(of.in * of.out),
          of.kernel == 1 ? channels_in * square(of.size) : input};
}

// Returns the product of one pass over `rows` pixels or tiles of all images.
Product product_of(ConvolutionPass pass, std::int64_t rows, std::int64_t in, std::int64_t out,
                   std::int64_t taps, MatrixFormat format) {
  Product product{.format = format};
  switch (pass) {
    case ConvolutionPass::forward:
      product.m = rows, product.n = out, product.k = taps * in;
      break;
    case ConvolutionPass::input_gradient:
      product.m = rows, product.n = in, product.k = taps * out;
      break;
    case ConvolutionPass::weight_gradient:
      product.m = taps * in, product.n = out, product.k = rows;
      break;
  }
  return product;
}

KernelCost operator+(KernelCost a, const KernelCost& b) {
  a.flops += b.flops, a.bytes += b.bytes, a.duration += b.duration, a.rests_on += b.rests_on;
  return a;
}

KernelCost by_4x4(const Convolution& of, std::int64_t images, ConvolutionPass pass,
                  MatrixFormat format, const GpuRates& rates) {
  const std::int64_t edge = (of.size + tile_edge - 1) / tile_edge;
  Product product = product_of(pass, images * edge * edge, of.in, of.out, 1, format);
  product.batch = products;
  product.share = share_outside;
  const Tensors tensors = tensors_of(of, images);
  const double tiled = static_cast<double>(edge * edge * tile_edge * tile_edge) / square(of.size);
  const double plain = tensors.input + tensors.output + tensors.weights;
  const double widened =
      widened_pixels * tiled * (tensors.input + tensors.output) + widened_weights * tensors.weights;
  // The product reads and writes transformed tensors. The transforms do too, and they also read and
  // write the plain ones.
  const double bytes = bytes_per_element(format);
  product.moved = Bytes(bytes * widened);
  return product_cost(product, rates) + memory_cost(Bytes(bytes * (plain + widened)), 3, rates);
}

KernelCost moving(double elements, const ConvolutionRun& run, const GpuRates& rates) {
  return memory_cost(Bytes(elements * bytes_per_element(run.format)), 1, rates);
}

// Adds norm, sum and ReLU after a convolution of N outputs.
void add_rest(const Convolution& of, double n, const ConvolutionRun& run, const GpuRates& rates,
              ConvolutionTimes& times) {
  if (run.fused && of.norm) {
    const double mask = of.relu ? 1 / 16.0 : 0, sum = of.shortcut ? 1 : 0;
    times.forward = times.forward + moving((3 + sum + mask) * n, run, rates);
    times.backward = times.backward + moving((5 + sum + mask) * n, run, rates);
    return;
  }
  const auto add = [&](bool is_there, double forward, double backward) {
    if (!is_there) return;
    times.forward = times.forward + moving(forward * n, run, rates);
    times.backward = times.backward + moving(backward * n, run, rates);
  };
  add(of.norm, 3, 5);
  add(of.shortcut, 3, 3);
  add(of.relu, 2, 3);
}

}  // namespace

ConvolutionRun convolution_run(std::string_view program, MatrixFormat format) {
  const bool compiled = program == "nvidia" || program == "jax";
  return {.format = format, .fused = compiled, .channels_last = compiled};
}

KernelCost convolution_cost(const Convolution& of, std::int64_t images, ConvolutionPass pass,
                            MatrixFormat format, const GpuRates& rates) {
  if (of.size == 0) return {};
  const Tensors tensors = tensors_of(of, images);
  Product product =
      product_of(pass, images * of.size * of.size, of.in, of.out, of.kernel * of.kernel, format);
  const bool outside = outside_matrix_units(format, rates);
  product.share = outside ? share_outside : 1;
  const double input = pass == ConvolutionPass::input_gradient ? tensors.input : tensors.read_input;
  product.moved = Bytes(bytes_per_element(format) * (input + tensors.output + tensors.weights));
  KernelCost best = product_cost(product, rates);
  if (!outside || of.kernel != 3 || of.stride != 1) return best;
  product.share *= saved_by_2x2;
  for (const KernelCost& other :
       {product_cost(product, rates), by_4x4(of, images, pass, format, rates)})
    if (other.duration < best.duration) best = other;
  return best;
}

ConvolutionTimes convolution_times(const ModelShape& shape, std::int64_t images,
                                   const ConvolutionRun& run, const GpuRates& rates) {
  ConvolutionTimes times;
  const bool transposes = !run.channels_last && run.format == MatrixFormat::half;
  for (const Convolution& of : shape.convolutions) {
    const Tensors tensors = tensors_of(of, images);
    const auto cost = [&](ConvolutionPass pass) {
      return convolution_cost(of, images, pass, run.format, rates);
    };
    times.forward = times.forward + cost(ConvolutionPass::forward);
    times.backward = times.backward + cost(ConvolutionPass::weight_gradient);
    const bool first = &of == &shape.convolutions.front();
    if (!first) times.backward = times.backward + cost(ConvolutionPass::input_gradient);
    if (transposes) {
      times.forward = times.forward + moving(2 * tensors.input, run, rates);
      times.backward = times.backward +
                       moving(2 * (tensors.input + (first ? 1 : 2) * tensors.output), run, rates);
    }
    add_rest(of, tensors.output, run, rates, times);
  }
  return times;
}

}  // namespace lambcast
