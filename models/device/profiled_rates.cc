#include "models/device/profiled_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "kernels/profile/layer_shape.h"
#include "models/device/matrix_product.h"

namespace lambcast {
namespace {

double pass_us(const std::vector<cuda::Product>& products, double copied, const Device& profile,
               const GpuRates& rates) {
  Duration time =
      Bytes(copied) / profile.copy_bandwidth.value + rates.kernel_start.value;  // time of one copy
  const auto whole = [](std::size_t size) { return static_cast<std::int64_t>(size); };
  for (const cuda::Product& p : products) {
    const Product product{whole(p.m), whole(p.n), whole(p.k), whole(p.batch)};
    time += product_cost(product, rates).duration;
  }
  return time.us();
}

struct LayerSum {
  double measured_us = 0, forecast_us = 0;
};

// Returns whether a layer has a size that can be timed; larger products overflow.
bool is_timeable(const LayerCurve& layer) {
  return layer.hidden <= 1 << 16 && layer.heads <= 1 << 10 && layer.ffn <= 1 << 18 &&
         layer.seq_len <= 1 << 17 && layer.micro_batch.back() <= 1 << 12;
}

// Returns the measured and forecast times of a layer, or zeros for a layer that cannot be timed.
LayerSum sum_of(const LayerCurve& layer, const Device& profile, const GpuRates& rates) {
  const cuda::LayerShape shape{static_cast<int>(layer.hidden), static_cast<int>(layer.heads),
                               static_cast<int>(layer.ffn), static_cast<int>(layer.seq_len)};
  LayerSum sum;
  if (!is_timeable(layer)) return sum;
  for (std::size_t i = 0; i < layer.micro_batch.size(); ++i) {
    const int micro = static_cast<int>(layer.micro_batch[i]);
    const double copied = rest_bytes(shape, micro);
    sum.measured_us += layer.forward_us[i] + layer.backward_us[i];
    sum.forecast_us += pass_us(forward_products(shape, micro), copied, profile, rates) +
                       pass_us(backward_products(shape, micro), 2 * copied, profile, rates);
  }
  return sum;
}

// Fixed-point iteration: the share is multiplied by forecast over measured time until both agree.
double share_of_layers(const Device& profile, GpuRates rates) {
  double& share = rates.matrix[static_cast<std::size_t>(MatrixFormat::half)].share.value;
  for (int round = 0; round < 8; ++round) {
    LayerSum all;
    for (const LayerCurve& layer : profile.layers) {
      const LayerSum sum = sum_of(layer, profile, rates);
      all.measured_us += sum.measured_us, all.forecast_us += sum.forecast_us;
    }
    if (all.measured_us == 0) break;
    share = std::clamp(share * all.forecast_us / all.measured_us, 1e-3, 1.0);
  }
  return share;
}

std::optional<Duration> least_start(const Device& profile) {
  double least_us = std::numeric_limits<double>::infinity();
  for (const KernelCurve& kernel : profile.kernels) {
    if (kernel.bytes_per_element == 0) continue;
    const double bytes = kernel.bytes_per_element * kernel.elements.front();
    least_us = std::min(
        least_us, kernel.time_us.front() - 1e6 * bytes / profile.copy_bandwidth.value.value());
  }
  if (!(least_us > 0 && std::isfinite(least_us))) return std::nullopt;
  return Duration::microseconds(least_us);
}

// Returns whether `text` contains `word` as a separate word, ignoring case.
bool has_word(const std::string& text, const std::string& word) {
  std::string token;
  for (const char c : text + " ") {
    if (std::isalnum(static_cast<unsigned char>(c))) {
      token += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      continue;
    }
    if (token == word) return true;
    token.clear();
  }
  return false;
}

std::optional<GpuRates> rates_of_preset(const Device& profile) {
  const auto preset = preset_of_gpu(profile.name, profile.memory_capacity);
  if (!preset) return std::nullopt;
  const Device device = load_device(*preset);
  GpuRates rates = device.rates.value();
  const double of_frameworks = rates.memory.value / device.copy_bandwidth.value;
  rates.memory.value = profile.copy_bandwidth.value * of_frameworks;
  if (of_frameworks == 1) rates.memory.provenance = profile.copy_bandwidth.provenance;
  return rates;
}

// Returns the nominal rates of a GPU without a preset, at its highest clock. Shares are the usual
// ones of the presets until timed products set them.
std::optional<GpuRates> rates_of_chip(const Device& profile, const TimedChip& chip) {
  if (chip.multiprocessors == 0 || chip.clock_mhz == 0) return std::nullopt;
  const double clocks = 1e6 * chip.clock_mhz * chip.multiprocessors;
  GpuRates rates;
  rates.compute_capability = chip.compute_capability;
  rates.multiprocessors = chip.multiprocessors;
  rates.exponentials = {FlopRate(16 * clocks),
                        {Kind::assumed, "16 a clock and multiprocessor, highest clock"}};
  rates.peak_vector = {FlopRate(2 * 128 * clocks),
                       {Kind::assumed, "128 units a multiprocessor, highest clock"}};
  rates.memory = {profile.copy_bandwidth.value * 0.75, {Kind::assumed, "as the H100"}};
  const auto set = [&](MatrixFormat format, const Sourced<FlopRate>& peak) {
    rates.matrix[static_cast<std::size_t>(format)] = {peak, {0.6, {Kind::assumed, "not timed"}}};
  };
  set(MatrixFormat::single, profile.peak_single);
  set(MatrixFormat::half, profile.peak_half);
  if (chip.compute_capability >= 8.9)
    set(MatrixFormat::fp8, {2 * profile.peak_half.value, {Kind::assumed, "twice peak_half"}});
  return rates;
}

}  // namespace

std::optional<std::string> preset_of_gpu(const std::string& gpu, Bytes memory) {
  std::optional<std::string> nearest;
  double least = std::numeric_limits<double>::infinity();
  for (const std::string& name : device_names()) {
    if (!has_word(gpu, name.substr(0, name.find('-')))) continue;
    const double off = std::abs(std::log(load_device(name).memory_capacity / memory));
    if (off < least) nearest = name, least = off;
  }
  return nearest;
}

std::optional<GpuRates> rates_of_profile(const Device& profile, const TimedChip& chip,
                                         const std::vector<TimedProducts>& products) {
  if (profile.layers.empty() && profile.kernels.empty()) return std::nullopt;
  std::optional<GpuRates> rates = rates_of_preset(profile);
  if (!rates) rates = rates_of_chip(profile, chip);
  if (!rates) return std::nullopt;
  rates->device = profile.name;
  if (const auto start = least_start(profile))
    rates->kernel_start = {*start,
                           {Kind::fitted, "kernels at their smallest size, " +
                                              profile.kernels.front().provenance.source}};
  for (const MatrixFormat format : {MatrixFormat::single, MatrixFormat::half, MatrixFormat::fp8}) {
    MatrixRate& rate = rates->matrix[static_cast<std::size_t>(format)];
    if (rate.peak.value == FlopRate()) continue;
    Sourced<double>& share = rate.share;
    if (format == MatrixFormat::half && !profile.layers.empty()) {
      share = {kept_in_training * share_of_layers(profile, *rates),
               {Kind::fitted, fmt::format("products of {} layers, {}", profile.layers.size(),
                                          profile.layers.front().provenance.source)}};
    } else if (const TimedProducts* timed = products_of(products, format)) {
      share = {kept_in_training * fitted_share(*timed, format, *rates),
               {Kind::fitted, fmt::format("{} products in {}, {}", timed->products.size(),
                                          timed->format, timed->provenance.source)}};
    } else {
      continue;
    }
    if (format == MatrixFormat::half) rates->held_out = held_out_of_profiles;
  }
  return rates;
}

std::vector<double> errors_of_layers(const Device& profile) {
  GpuRates rates = profile.rates.value();
  rates.matrix[static_cast<std::size_t>(MatrixFormat::half)].share.value /= kept_in_training;
  std::vector<double> errors;
  for (const LayerCurve& layer : profile.layers) {
    const LayerSum sum = sum_of(layer, profile, rates);
    errors.push_back(std::log(sum.forecast_us / sum.measured_us));
  }
  return errors;
}

}  // namespace lambcast
