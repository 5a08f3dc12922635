#include "models/device/timed_products.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/device/device.h"
#include "models/device/matrix_product.h"
#include "sim/base/error.h"

namespace lambcast {
namespace {

const std::vector<std::string> formats{"fp16", "bf16", "tf32", "fp32", "fp8"};

constexpr std::int64_t most_rows = 1 << 20;
constexpr double longest_us = 3.6e9;  // an hour

double forecast_us(const TimedProduct& p, MatrixFormat format, const GpuRates& rates) {
  Product product{p.m, p.n, p.k, 1, format};
  product.output_bytes = format == MatrixFormat::single ? 4 : 2;
  return product_cost(product, rates).duration.us();
}

double& share_in(GpuRates& rates, MatrixFormat format) {
  return rates.matrix[static_cast<std::size_t>(format)].share.value;
}

}  // namespace

TimedChip decode_chip(const Table& device) {
  TimedChip chip;
  // Every key is looked up, so that the generated reference lists it.
  const bool absent =
      !device.has("compute_capability") & !device.has("multiprocessors") & !device.has("clock_mhz");
  if (absent) return chip;
  chip.compute_capability = device.get<double>("compute_capability");
  if (!(chip.compute_capability >= 1 && chip.compute_capability < 100))
    fail_input(device.where("compute_capability"),
               fmt::format("{} is not a compute capability", chip.compute_capability),
               "as 8.0, 9.0 or 10.3");
  chip.multiprocessors = static_cast<int>(device.integer("multiprocessors", 1, 1 << 16));
  chip.clock_mhz = static_cast<double>(device.integer("clock_mhz", 0, 1 << 16));
  return chip;
}

std::vector<TimedProducts> decode_products(const Table& root, const Provenance& of_device) {
  std::vector<TimedProducts> all;
  for (const Table& table : root.tables("product")) {
    TimedProducts products{
        formats[table.choice("format", formats)], {}, table.provenance_or(of_device)};
    const auto times = table.get<std::vector<double>>("time_us");
    table.has("spread_us");  // read by other programs
    const auto lengths = [&](const char* key) {
      const auto values = table.get<std::vector<double>>(key);
      if (values.size() != times.size())
        fail_input(table.where(key),
                   fmt::format("has {} values for {} times", values.size(), times.size()));
      for (const double value : values)
        if (!(value >= 1 && value <= most_rows && value == std::floor(value)))
          fail_input(table.where(key), fmt::format("{:g} is not a length", value),
                     fmt::format("whole numbers from 1 to {}", most_rows));
      return values;
    };
    const auto m = lengths("m"), n = lengths("n"), k = lengths("k");
    for (std::size_t i = 0; i < times.size(); ++i) {
      if (!(times[i] > 0 && times[i] <= longest_us))
        fail_input(table.where("time_us"), fmt::format("{:g} is out of range", times[i]),
                   fmt::format("above 0, at most {:g}", longest_us));
      products.products.push_back({static_cast<std::int64_t>(m[i]), static_cast<std::int64_t>(n[i]),
                                   static_cast<std::int64_t>(k[i]), times[i]});
    }
    if (products.products.empty()) fail_input(table.where("time_us"), "is empty");
    all.push_back(std::move(products));
  }
  return all;
}

const TimedProducts* products_of(const std::vector<TimedProducts>& all, MatrixFormat format) {
  const auto find = [&](std::string_view name) -> const TimedProducts* {
    const auto found = std::ranges::find(all, name, &TimedProducts::format);
    return found == all.end() ? nullptr : &*found;
  };
  const auto either = [&](std::string_view first, std::string_view second) {
    const TimedProducts* found = find(first);
    return found != nullptr ? found : find(second);
  };
  switch (format) {
    case MatrixFormat::half:
      return either("fp16", "bf16");
    case MatrixFormat::single:
      return either("tf32", "fp32");
    case MatrixFormat::fp8:
      return find("fp8");
    case MatrixFormat::mxfp8:
    case MatrixFormat::nvfp4:
      break;
  }
  return nullptr;
}

// Fixed-point iteration: the share is multiplied by forecast over measured time until both agree.
double fitted_share(const TimedProducts& timed, MatrixFormat format, GpuRates rates) {
  double& share = share_in(rates, format);
  if (share == 0) share = 0.5;
  for (int round = 0; round < 8; ++round) {
    double forecast = 0, measured = 0;
    for (std::size_t i = 0; i < timed.products.size(); ++i) {
      if (is_held_back(i)) continue;
      forecast += forecast_us(timed.products[i], format, rates);
      measured += timed.products[i].time_us;
    }
    share = std::clamp(share * forecast / measured, 1e-3, 1.0);
  }
  return share;
}

std::vector<double> held_back_errors(const TimedProducts& timed, MatrixFormat format,
                                     const GpuRates& of_gpu) {
  GpuRates rates = of_gpu;
  share_in(rates, format) = fitted_share(timed, format, rates);
  std::vector<double> errors;
  for (std::size_t i = 0; i < timed.products.size(); ++i)
    if (is_held_back(i))
      errors.push_back(std::abs(
          std::log(forecast_us(timed.products[i], format, rates) / timed.products[i].time_us)));
  std::ranges::sort(errors);
  return errors;
}

std::vector<std::string> held_back_lines(const std::string& profile) {
  const Table root = Table::parse(profile, "profile.toml");
  const Device device = decode_device(root);
  std::vector<std::string> lines;
  if (!device.rates) return lines;
  const std::vector<TimedProducts> all = decode_products(root, {});
  for (const MatrixFormat format : {MatrixFormat::half, MatrixFormat::single, MatrixFormat::fp8}) {
    const TimedProducts* timed = products_of(all, format);
    if (timed == nullptr || device.rates->of(format).peak.value == FlopRate()) continue;
    const std::vector<double> errors = held_back_errors(*timed, format, *device.rates);
    if (errors.empty()) continue;
    const auto quantile = [&](double share) {
      return 100 * errors[static_cast<std::size_t>(share * static_cast<double>(errors.size() - 1))];
    };
    lines.push_back(
        fmt::format("products in {}: median error {:.1f} %, 90th percentile {:.1f} % on {} shapes "
                    "that set no rate",
                    timed->format, quantile(0.5), quantile(0.9), errors.size()));
  }
  return lines;
}

}  // namespace lambcast
