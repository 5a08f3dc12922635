#include "models/device/matrix_product.h"

#include <algorithm>
#include <limits>

#include "sim/base/check.h"

namespace lambcast {
namespace {

struct Tile {
  std::int64_t m, n;
  double share;  // share of the largest tile's rate
};
constexpr Tile tiles[] = {{256, 128, 1},  {128, 256, 1},  {128, 128, 0.9},
                          {128, 64, 0.7}, {64, 128, 0.7}, {64, 64, 0.5}};
constexpr std::int64_t splits[] = {1, 2, 4, 8};
constexpr double ramp_bytes = 512, k_step_bytes = 64;

constexpr double unaligned_share =
    0.5;  // share of the rate of a single product on the matrix units
constexpr double unaligned_batched_share = 0.6;  // share of peak_vector

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

FlopRate reached_by(const Product& p, const GpuRates& rates) {
  if (p.aligned_rows) return rates.reached(p.format) * p.share;
  if (p.batch > 1) return rates.peak_vector.value * unaligned_batched_share;
  return rates.reached(p.format) * unaligned_share;
}

double least_compute_s(const Product& p, const GpuRates& rates) {
  const double in = bytes_per_element(p.format);
  const auto step = static_cast<std::int64_t>(k_step_bytes / in);
  const bool vector = outside_matrix_units(p.format, rates);
  const double ramp_s = (vector ? k_step_bytes : ramp_bytes) / in / rates.reached(p.format).value();
  double least = std::numeric_limits<double>::infinity();
  for (const std::int64_t split : splits) {
    const auto k = static_cast<double>(ceil_div(ceil_div(p.k, split), step) * step);
    // Time on one multiprocessor per element of a tile.
    const double element_s =
        2 * (k / reached_by(p, rates).value() + ramp_s) * rates.multiprocessors;
    // Each of the `split` parts of C is written and read once, in fp32.
    const double sums = split == 1 ? 0 : 8 * static_cast<double>(p.m * p.n * p.batch * split);
    for (const Tile& tile : tiles) {
      const std::int64_t blocks = ceil_div(p.m, tile.m) * ceil_div(p.n, tile.n) * p.batch * split;
      const auto waves = static_cast<double>(ceil_div(blocks, rates.multiprocessors));
      least = std::min(least, waves * static_cast<double>(tile.m * tile.n) * element_s /
                                      (vector ? 1 : tile.share) +
                                  sums / rates.memory.value.value());
    }
  }
  return least;
}

}  // namespace

bool rows_aligned(MatrixFormat format, std::initializer_list<std::int64_t> lengths) {
  const auto elements = static_cast<std::int64_t>(16 / bytes_per_element(format));
  return std::all_of(lengths.begin(), lengths.end(),
                     [&](std::int64_t length) { return length % elements == 0; });
}

bool outside_matrix_units(MatrixFormat format, const GpuRates& rates) {
  return format == MatrixFormat::single && rates.compute_capability < generation::ampere;
}

KernelCost product_cost(const Product& p, const GpuRates& rates) {
  LAMBCAST_CHECK(p.m >= 0 && p.n >= 0 && p.k >= 0 && p.batch >= 0,
                 "a product of {} x {} x {}, {} times", p.m, p.n, p.k, p.batch);
  if (p.m == 0 || p.n == 0 || p.k == 0 || p.batch == 0) return {};
  const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n),
             k = static_cast<double>(p.k), batch = static_cast<double>(p.batch);
  KernelCost cost;
  cost.flops = Flops(2 * m * n * k * batch);
  cost.bytes = p.moved.value_or(
      Bytes(batch * ((m * k + k * n) * bytes_per_element(p.format) + m * n * p.output_bytes)));
  const Duration compute = Duration::seconds(least_compute_s(p, rates));
  const Duration moving = cost.bytes / rates.memory.value;
  cost.duration = std::max(compute, moving) + rates.kernel_start.value;
  const bool on_matrix_units = p.aligned_rows || p.batch == 1;
  const Rate computed_at = on_matrix_units ? rate_of(p.format) : Rate::vector;
  cost.rests_on[compute >= moving ? computed_at : Rate::memory] = std::max(compute, moving);
  cost.rests_on[Rate::start] = rates.kernel_start.value;
  return cost;
}

}  // namespace lambcast
