#include "sim/base/ratio.h"

#include <fmt/format.h>

namespace lambcast {

std::string ratio_digits(double ratio) {
  constexpr int most_digits = 4;
  std::string text = fmt::format("{:.2f}", ratio);
  for (int digits = 2;
       digits < most_digits && ratio != 1 && text == fmt::format("{:.{}f}", 1.0, digits);)
    text = fmt::format("{:.{}f}", ratio, ++digits);
  return text;
}

std::string times_as_long(double ratio) {
  const std::string digits = ratio_digits(ratio);
  const bool even = digits.starts_with("1.") && digits.find_first_not_of('0', 2) == digits.npos;
  return even ? "as long" : digits + " times as long";
}

}  // namespace lambcast
