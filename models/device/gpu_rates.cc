#include "models/device/gpu_rates.h"

#include <fmt/format.h>

#include "sim/base/check.h"
#include "sim/base/error.h"

namespace lambcast {
namespace {

constexpr std::string_view format_names[matrix_formats] = {"single", "half", "fp8", "mxfp8",
                                                           "nvfp4"};

}  // namespace

std::string_view name_of(MatrixFormat format) {
  return format_names[static_cast<std::size_t>(format)];
}

double bytes_per_element(MatrixFormat format) {
  constexpr double bytes[matrix_formats] = {4, 2, 1, 1, 0.5};
  return bytes[static_cast<std::size_t>(format)];
}

FlopRate GpuRates::reached(MatrixFormat format) const {
  const MatrixRate& rate = of(format);
  if (rate.share.value == 0)
    fail_input({"", 0, "precision"},
               fmt::format("{} has no matrix units for {}", device, name_of(format)));
  return rate.peak.value * rate.share.value;
}

GpuRates decode_rates(const Table& rates, const DeviceNumbers& device) {
  GpuRates result;
  result.device = device.name;
  const bool has_fp8 = rates.has("peak_fp8"), has_fp4 = rates.has("peak_fp4");
  result.compute_capability =
      rates.get_or<double>("compute_capability", has_fp4   ? generation::blackwell
                                                 : has_fp8 ? generation::hopper
                                                           : generation::ampere);
  if (!(result.compute_capability >= 1 && result.compute_capability < 100))
    fail_input(rates.where("compute_capability"),
               fmt::format("{} is not a compute capability", result.compute_capability),
               "as 8.0, 9.0 or 10.3");
  result.multiprocessors = static_cast<int>(rates.integer("multiprocessors", 1, 1 << 16));
  result.peak_vector = rates.get<Sourced<FlopRate>>("peak_vector");
  result.exponentials = rates.get<Sourced<FlopRate>>("exponentials");
  result.memory = device.copy_bandwidth;
  if (const auto share = rates.find<Sourced<double>>("share_memory")) {
    if (!(share->value > 0 && share->value <= 1))
      fail_input(rates.where("share_memory"), "must be above 0 and at most 1");
    result.memory = {device.copy_bandwidth.value * share->value, share->provenance};
  }
  result.kernel_start = rates.get_or<Sourced<Duration>>(
      "kernel_start",
      {Duration::microseconds(4), {Kind::assumed, "a kernel starts, fills the GPU and drains"}});
  const auto fp8 = rates.find<Sourced<FlopRate>>("peak_fp8");
  const auto fp4 = rates.find<Sourced<FlopRate>>("peak_fp4");
  const std::array<std::optional<Sourced<FlopRate>>, matrix_formats> peaks{
      device.peak_single, device.peak_half, fp8, fp8, fp4};
  for (std::size_t i = 0; i < matrix_formats; ++i) {
    const std::string key = fmt::format("share_{}", format_names[i]);
    const auto share = rates.find<Sourced<double>>(key);
    if (!share) continue;
    if (!(share->value > 0 && share->value <= 1))
      fail_input(rates.where(key), "must be above 0 and at most 1");
    if (!peaks[i])
      fail_input(rates.where(key), fmt::format("is a share of a peak that is missing: give {}",
                                               i == 4 ? "peak_fp4" : "peak_fp8"));
    result.matrix[i] = {*peaks[i], *share};
  }
  result.share_attention = rates.find<Sourced<double>>("share_attention");
  if (result.share_attention &&
      !(result.share_attention->value > 0 && result.share_attention->value <= 1))
    fail_input(rates.where("share_attention"), "must be above 0 and at most 1");
  if (rates.has("held_out")) {
    const Table held_out = rates.table("held_out");
    result.held_out = HeldOut{held_out.get<double>("off"),
                              static_cast<int>(held_out.integer("groups", 1, 1 << 16))};
    if (!(result.held_out->off > 0)) fail_input(held_out.where("off"), "must be above zero");
  }
  return result;
}

GpuRates slowed(GpuRates rates, double factor) {
  LAMBCAST_CHECK(factor > 0, "kernels {} times as long", factor);
  for (MatrixRate& rate : rates.matrix) rate.share.value /= factor;
  if (rates.share_attention) rates.share_attention->value /= factor;
  rates.peak_vector.value = rates.peak_vector.value / factor;
  rates.memory.value = rates.memory.value / factor;
  rates.exponentials.value = rates.exponentials.value / factor;
  rates.kernel_start.value = rates.kernel_start.value.scaled(factor);
  return rates;
}

KernelCost memory_cost(Bytes bytes, int kernels, const GpuRates& rates) {
  if (bytes.value() == 0) return {};
  const Duration moving = bytes / rates.memory.value;
  const Duration starting = kernels * rates.kernel_start.value;
  KernelCost cost{Flops(), bytes, moving + starting};
  cost.rests_on[Rate::memory] = moving;
  cost.rests_on[Rate::start] = starting;
  return cost;
}

RateTimes& RateTimes::operator+=(const RateTimes& other) {
  for (std::size_t i = 0; i < rate_count; ++i) of[i] += other.of[i];
  return *this;
}

RateTimes operator*(RateTimes times, std::int64_t count) {
  for (Duration& time : times.of) time = time * count;
  return times;
}

}  // namespace lambcast
