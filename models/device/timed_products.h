// The parts of a profile that do not belong to Device: the chip, and matrix products timed by
// shape.
#pragma once

#include <vector>

#include "models/device/gpu_rates.h"
#include "sim/base/table.h"

namespace lambcast {

// Keys of [device]; 0: the file was written before these keys existed.
struct TimedChip {
  double compute_capability = 0;
  int multiprocessors = 0;
  double clock_mhz = 0;
};

struct TimedProduct {
  std::int64_t m = 0, n = 0, k = 0;
  double time_us = 0;
};

// One [[product]] table of a profile. Two tables may have the same MatrixFormat: fp16 and bf16, or
// tf32 and fp32.
struct TimedProducts {
  std::string format;
  std::vector<TimedProduct> products;
  Provenance provenance;
};

TimedChip decode_chip(const Table& device);
std::vector<TimedProducts> decode_products(const Table& root, const Provenance& of_device);

// Returns the table of a file that sets the rate of `format`, or null. Half: fp16, else bf16.
// Single: tf32, else fp32.
const TimedProducts* products_of(const std::vector<TimedProducts>& all, MatrixFormat format);

// Returns whether the product with this index is held back for checking instead of setting a rate:
// every third one.
constexpr bool is_held_back(std::size_t index) { return index % 3 == 2; }

// Returns the share of the peak of `format` at which the products that are not held back, priced by
// shape (matrix_product.h), together take the measured time.
double fitted_share(const TimedProducts& products, MatrixFormat format, GpuRates rates);

// Returns the errors |log(forecast / measured)| of the products that were held back, ascending.
std::vector<double> held_back_errors(const TimedProducts& products, MatrixFormat format,
                                     const GpuRates& rates);

// Returns a line per format of a profile: median and 90th percentile of these errors.
std::vector<std::string> held_back_lines(const std::string& profile);

}  // namespace lambcast
