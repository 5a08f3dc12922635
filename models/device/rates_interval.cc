#include "models/device/rates_interval.h"

#include <cmath>

namespace lambcast {
namespace {

constexpr double claimed = 0.9;

}  // namespace

double kernel_variance(const HeldOut& of_device) {
  return (typical_sources * typical_off * typical_off +
          of_device.groups * of_device.off * of_device.off) /
         (typical_sources + of_device.groups);
}

ComputeWidth rates_width(const std::optional<HeldOut>& of_device) {
  if (!of_device) return {held_out::rate.off, std::nullopt};
  const double freedom = typical_sources + of_device->groups;
  const double t = 1.645 + 1.524 / freedom + 1.42 / (freedom * freedom);
  return {t * std::sqrt(kernel_variance(*of_device) + program_spread * program_spread), claimed};
}

}  // namespace lambcast
