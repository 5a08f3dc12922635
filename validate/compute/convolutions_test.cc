// Compares convolutions by their shapes (models/device/convolution_time.h) with single ones
// measured on a V100.
//
//   build/validate/compute/convolutions_test "[cases]"     prints each
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "models/device/convolution_time.h"
#include "models/device/device.h"
#include "sim/base/csv.h"
#include "sim/base/file.h"

namespace lambcast {
namespace {

struct MeasuredConvolution {
  Convolution of;
  std::int64_t images;
  MatrixFormat format;
  ConvolutionPass pass;
  double measured_s, forecast_s;
  double off() const { return std::log(forecast_s / measured_s); }
};

std::vector<MeasuredConvolution> measured_convolutions() {
  const csv::Table table = csv::parse(
      read_file(std::string(LAMBCAST_COMPUTE) + "/convolutions.csv"), "convolutions.csv");
  const auto whole = [&](std::size_t row, const char* title) {
    return static_cast<std::int64_t>(table.number(row, title));
  };
  std::vector<MeasuredConvolution> all;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const GpuRates rates = load_device(table.text(i, "gpu")).rates.value();
    const Convolution of{.kernel = whole(i, "kernel"),
                         .stride = whole(i, "stride"),
                         .in = whole(i, "in"),
                         .out = whole(i, "out"),
                         .size = whole(i, "size")};
    const MatrixFormat format =
        table.text(i, "precision") == "fp32" ? MatrixFormat::single : MatrixFormat::half;
    for (const auto& [pass, title] :
         {std::pair(ConvolutionPass::forward, "forward_ms"),
          std::pair(ConvolutionPass::input_gradient, "input_gradient_ms"),
          std::pair(ConvolutionPass::weight_gradient, "weight_gradient_ms")}) {
      if (table.text(i, title).empty()) continue;
      const std::int64_t images = whole(i, "images");
      all.push_back({of, images, format, pass, 1e-3 * table.number(i, title),
                     convolution_cost(of, images, pass, format, rates).duration.s()});
    }
  }
  return all;
}

double quantile_of(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1))];
}

// `share_outside` of convolution_time.cc comes from the fp32 half of these cases. In 16 bits the
// level is that of whole training steps of transformers, an eighth below that of single products
// (kernel_shapes_test.cc).
TEST_CASE("convolutions: forecasts by shape have a median error below a quarter, from 100 us on") {
  const std::vector<MeasuredConvolution> all = measured_convolutions();
  for (const MatrixFormat format : {MatrixFormat::single, MatrixFormat::half}) {
    std::vector<double> off, errors;
    for (const MeasuredConvolution& one : all)
      if (one.format == format && one.measured_s >= 1e-4) {
        off.push_back(one.off());
        errors.push_back(std::abs(one.off()));
      }
    INFO(name_of(format) << ": " << errors.size() << ", median " << quantile_of(errors, 0.5)
                         << ", 90th " << quantile_of(errors, 0.9) << ", mean "
                         << quantile_of(off, 0.5));
    CHECK(errors.size() >= 40);
    CHECK(quantile_of(errors, 0.5) < 0.25);
    CHECK(std::abs(quantile_of(off, 0.5)) < 0.15);
  }
}

TEST_CASE("convolutions: prints each", "[.][cases]") {
  for (const MeasuredConvolution& one : measured_convolutions())
    fmt::print("{} {} {}x{} s{} {}->{} at {} b{}: {:.0f} us, forecast {:.0f}, {:+.2f}\n",
               name_of(one.format), static_cast<int>(one.pass), one.of.kernel, one.of.kernel,
               one.of.stride, one.of.in, one.of.out, one.of.size, one.images, 1e6 * one.measured_s,
               1e6 * one.forecast_s, one.off());
}

}  // namespace
}  // namespace lambcast
