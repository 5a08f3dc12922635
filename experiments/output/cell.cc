#include "experiments/output/cell.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "experiments/output/forecast_output.h"
#include "sim/base/check.h"

namespace lambcast {
namespace {

// Formats with `digits` significant digits, or more if the integer part needs them.
std::string of_digits(double value, int digits, int most_decimals) {
  const double power = value > 0 ? std::floor(std::log10(value)) : 0;
  return fmt::format("{:.{}f}", value,
                     static_cast<int>(std::clamp(digits - 1 - power, 0.0, double(most_decimals))));
}

// Pads a quantity with zeros: "20 min" becomes "20.00 min".
std::string with_zeros(const std::string& quantity) {
  const std::size_t end = quantity.find(' ');
  return number_cell(std::stod(quantity.substr(0, end))) + quantity.substr(end);
}

// Removes trailing zeros: "20.00" becomes "20".
std::string without_zeros(std::string number) {
  if (number.find('.') == std::string::npos) return number;
  number.erase(number.find_last_not_of('0') + 1);
  if (number.back() == '.') number.pop_back();
  return number;
}

struct TimeUnit {
  std::string_view name;
  double s;
};

// Returns the unit that run_time_text() would choose for the time.
TimeUnit unit_beside(double seconds) {
  const std::string text = run_time_text(seconds);
  constexpr TimeUnit units[] = {{"h", 3600},  {"min", 60},  {"s", 1},     {"ms", 1e-3},
                                {"us", 1e-6}, {"ns", 1e-9}, {"ps", 1e-12}};
  const auto* unit = std::ranges::find(units, text.substr(text.find(' ') + 1), &TimeUnit::name);
  LAMBCAST_CHECK(unit != std::end(units), "no unit of time in {}", text);
  return *unit;
}

}  // namespace

std::string time_cell(double seconds) { return with_zeros(run_time_text(seconds)); }

std::string time_range(double seconds, double low_s, double high_s) {
  const TimeUnit unit = unit_beside(seconds);
  return fmt::format("{} to {} {}", number_cell(low_s / unit.s), number_cell(high_s / unit.s),
                     unit.name);
}

std::string time_and_range(double seconds, double low_s, double high_s) {
  const TimeUnit unit = unit_beside(seconds);
  return fmt::format("{} ({} to {} {})", run_time_text(seconds),
                     without_zeros(number_cell(low_s / unit.s)),
                     without_zeros(number_cell(high_s / unit.s)), unit.name);
}

std::string bytes_cell(Bytes bytes) { return with_zeros(to_text(bytes)); }

std::string number_cell(double value) { return value == 0 ? "0" : of_digits(value, 4, 9); }

std::string usd_cell(double usd) { return of_digits(usd, 3, 2); }

std::string no_price_text() {
  return "no price is known; --set cluster.usd_per_gpu_hour=USD gives one";
}

}  // namespace lambcast
