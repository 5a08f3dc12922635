#include "validate/replay/axes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/units.h"
#include "topologies/calibration.h"

namespace lambcast {
namespace {

ScatterAxis around(std::string label, const std::vector<double>& values, double room) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return {std::move(label), true, *low / room, *high * room, {}};
}

std::string size_text(double bytes, bool is_short) {
  constexpr const char* units[] = {"", "K", "M", "G"};
  std::size_t power = 0;
  while (power < 3 && bytes >= 1024) bytes /= 1024, ++power;
  const std::string unit =
      is_short ? units[power] : fmt::format(" {}{}B", units[power], power > 0 ? "i" : "");
  return fmt::format("{:.0f}{}", bytes, unit);
}

// Returns 1, 10, 100, ... within the axis.
std::vector<double> decades(const ScatterAxis& axis) {
  std::vector<double> places;
  for (double place = std::pow(10, std::ceil(std::log10(axis.low))); place <= axis.high;
       place *= 10)
    places.push_back(place);
  return places;
}

}  // namespace

ScatterAxis time_axis(std::string label, const std::vector<double>& values_us) {
  ScatterAxis axis = around(std::move(label), values_us, 1.5);
  std::vector<double> places = decades(axis);
  if (places.size() < 3) places = report::round_places(axis.low, axis.high);
  for (const double place : places)
    axis.ticks.push_back({place, to_text(Duration::microseconds(place))});
  axis.unit = " us";
  return axis;
}

ScatterAxis size_axis(std::string label, const std::vector<double>& values, bool is_short) {
  ScatterAxis axis = around(std::move(label), values, 2);
  std::vector<double> places = {0x1p6, 0x1p11, small_below, medium_below, 0x1p32};
  if (!is_short) places.push_back(0x1p27);
  if (axis.high < axis.low * 0x1p12) {  // the decades would be too few, and there is room for all
    places.clear();
    for (double place = 1; place <= axis.high; place *= 4) places.push_back(place);
  }
  for (const double place : places) axis.ticks.push_back({place, size_text(place, is_short)});
  axis.unit = " bytes";
  return axis;
}

ScatterAxis ratio_axis(std::string label, const std::vector<double>& values) {
  ScatterAxis axis = around(std::move(label), values, 1.25);
  axis.low = std::min(axis.low, 0.7);
  axis.high = std::max(axis.high, 1.4);
  axis.ratio = true;
  for (const int percent : {-95, -90, -75, -50, -25, 0, 25, 50, 100, 200, 400, 900, 1900})
    axis.ticks.push_back({1 + percent / 100.0, percent == 0 ? "0" : fmt::format("{:+}%", percent)});
  return axis;
}

ScatterAxis round_axis(std::string label, const std::vector<double>& values, std::string_view unit,
                       std::size_t most) {
  ScatterAxis axis = around(std::move(label), values, 1.3);
  std::vector<double> places = report::round_places(axis.low, axis.high);
  if (places.size() > most) places = decades(axis);
  for (const double place : places)
    axis.ticks.push_back({place, fmt::format("{:.6g}{}", place, unit)});
  axis.unit = unit;
  return axis;
}

Guide proportional(const ScatterAxis& x, double factor, Guide::Kind kind) {
  return {x.low, x.low * factor, x.high, x.high * factor, kind};
}

}  // namespace lambcast
