#include "experiments/output/rate_text.h"

#include <fmt/format.h>

#include <cmath>

namespace lambcast {

std::string rate_text(double rate) {
  if (rate < 1000) return fmt::format("{:.4g}", rate);
  const double unit = std::pow(10, std::floor(std::log10(rate)) - 3);
  const std::string digits = fmt::format("{:.0f}", std::round(rate / unit) * unit);
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

}  // namespace lambcast
