#include "experiments/cell.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/forecast_output.h"

namespace lambcast {
namespace {

// With so many digits, where there are not more before the point.
std::string of_digits(double value, int digits, int most_decimals) {
  const double power = value > 0 ? std::floor(std::log10(value)) : 0;
  return fmt::format("{:.{}f}", value,
                     static_cast<int>(std::clamp(digits - 1 - power, 0.0, double(most_decimals))));
}

// "20 min" as "20.00 min".
std::string with_zeros(const std::string& quantity) {
  const std::size_t end = quantity.find(' ');
  return number_cell(std::stod(quantity.substr(0, end))) + quantity.substr(end);
}

}  // namespace

std::string time_cell(double seconds) { return with_zeros(run_time_text(seconds)); }

std::string bytes_cell(Bytes bytes) { return with_zeros(to_text(bytes)); }

std::string number_cell(double value) { return value == 0 ? "0" : of_digits(value, 4, 9); }

std::string usd_cell(double usd) { return of_digits(usd, 3, 2); }

}  // namespace lambcast
