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

std::string size_text(double bytes) {
  if (bytes >= 0x1p30) return fmt::format("{:.0f} GiB", bytes / 0x1p30);
  if (bytes >= 0x1p20) return fmt::format("{:.0f} MiB", bytes / 0x1p20);
  if (bytes >= 0x1p10) return fmt::format("{:.0f} KiB", bytes / 0x1p10);
  return fmt::format("{:.0f} B", bytes);
}

}  // namespace

ScatterAxis time_axis(std::string label, const std::vector<double>& values_us) {
  ScatterAxis axis = around(std::move(label), values_us, 1.5);
  for (double decade = std::pow(10, std::floor(std::log10(axis.low))); decade <= axis.high;
       decade *= 10)
    axis.ticks.push_back({decade, to_text(Duration::microseconds(decade))});
  return axis;
}

ScatterAxis size_axis(std::string label, const std::vector<double>& values) {
  ScatterAxis axis = around(std::move(label), values, 2);
  for (const double place : {0x1p6, 0x1p11, small_below, medium_below, 0x1p27, 0x1p32})
    axis.ticks.push_back({place, size_text(place)});
  return axis;
}

ScatterAxis ratio_axis(std::string label, const std::vector<double>& values) {
  ScatterAxis axis = around(std::move(label), values, 1.1);
  axis.low = std::min(axis.low, 0.7);
  axis.high = std::max(axis.high, 1.4);
  for (const int percent : {-95, -90, -75, -50, -25, 0, 25, 50, 100, 200, 400, 900, 1900})
    axis.ticks.push_back(
        {1 + percent / 100.0, percent == 0 ? "0" : fmt::format("{:+} %", percent)});
  return axis;
}

ScatterAxis round_axis(std::string label, const std::vector<double>& values,
                       std::string_view unit) {
  ScatterAxis axis = around(std::move(label), values, 1.3);
  for (const double place : report::round_places(axis.low, axis.high))
    axis.ticks.push_back({place, fmt::format("{:.6g}{}", place, unit)});
  return axis;
}

Guide proportional(const ScatterAxis& x, double factor, Guide::Kind kind) {
  return {x.low, x.low * factor, x.high, x.high * factor, kind};
}

}  // namespace lambcast
