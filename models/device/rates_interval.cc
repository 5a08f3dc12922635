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

double student_95(double freedom) { return 1.645 + 1.524 / freedom + 1.42 / (freedom * freedom); }

ComputeWidth rates_width(const std::optional<HeldOut>& of_device, const Unmeasured& lacking) {
  // Without held-out runs on this GPU, the width is that of a rate, which was measured over several
  // programs and GPUs.
  if (!of_device) return {held_out::rate.off, std::nullopt};
  ComputeWidth width{student_95(typical_sources + of_device->groups) *
                         std::sqrt(kernel_variance(*of_device) + program_spread * program_spread),
                     claimed};
  if (lacking.programs > 0)
    width.log = std::hypot(width.log, student_95(lacking.programs) * lacking.level_spread);
  if (lacking.share)
    width = {std::hypot(width.log, student_95(fitted_shares) * share_spread), std::nullopt};
  return width;
}

}  // namespace lambcast
