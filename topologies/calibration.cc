#include "topologies/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/error.h"

namespace lambcast {
namespace {

Calibration::Range whole_range(const Table& table, std::string_view key) {
  const auto ends = table.get<std::vector<std::int64_t>>(key);
  if (ends.size() != 2 || ends[0] < 1 || ends[1] < ends[0])
    fail_input(table.where(key), "is no range", "[lowest, highest], from 1 up");
  return {static_cast<double>(ends[0]), static_cast<double>(ends[1])};
}

double factor(const Table& table, std::string_view key) {
  const double value = table.get<double>(key);
  if (!(value > 0) || value > 1000)
    fail_input(table.where(key), fmt::format("{} is out of range", value), "above 0 to 1000");
  return value;
}

// How many times `value` lies past the range, at least 1.
double times_past(double value, const Calibration::Range& range) {
  return std::max({1.0, value / range.high, range.low / value});
}

// The half widths w, o and both of c.
struct Strangeness {
  double per_doubling, other_operation, one_after_several, several_after_one;
};

const Strangeness& strangeness_of(Bytes size) {
  static constexpr Strangeness small{0.75, 0.4, 1.15, 1.15}, medium{0.75, 0.3, 0.75, 0.8},
      large{0.25, 0.2, 0.55, 0.75};
  return size.value() < small_below ? small : size.value() < medium_below ? medium : large;
}

}  // namespace

std::optional<Calibration> decode_calibration(const Table& table) {
  if (table.keys().empty()) return std::nullopt;
  Calibration calibration;
  calibration.source = table.get_or<std::string>("source", "");
  calibration.mpi = table.choice("library", {"nccl", "mpi"}) == 1;
  const auto& names = op_names();
  for (const std::string& name : table.get<std::vector<std::string>>("operations")) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) fail_unknown(table.where("operations"), "operation", name, names);
    calibration.operations.push_back(static_cast<Op>(found - names.begin()));
  }
  calibration.sizes = {table.get<Bytes>("smallest").value(), table.get<Bytes>("largest").value()};
  if (!(calibration.sizes.low > 0) || calibration.sizes.high < calibration.sizes.low)
    fail_input(table.where("largest"), "is below the smallest size");
  calibration.ranks = whole_range(table, "ranks");
  calibration.nodes = whole_range(table, "nodes");
  for (const Table& band : table.tables("bands")) {
    const double below =
        band.find<Bytes>("below").value_or(Bytes(std::numeric_limits<double>::infinity())).value();
    if (!calibration.bands.empty() && below <= calibration.bands.back().below.value())
      fail_input(band.where("below"), "bands must be in order of size");
    calibration.bands.push_back({Bytes(below), factor(band, "low"), factor(band, "high")});
    if (calibration.bands.back().low > calibration.bands.back().high)
      fail_input(band.where("high"), "is below low");
  }
  if (calibration.bands.empty()) fail_input(table.where("bands"), "names none");
  return calibration;
}

std::string describe(const Calibration& calibration) {
  std::vector<std::string_view> operations;
  for (const Op op : calibration.operations) operations.push_back(name_of(op));
  return fmt::format("{}; {} to {}; {} to {} ranks on {} to {} nodes", fmt::join(operations, ", "),
                     to_text(Bytes(calibration.sizes.low)), to_text(Bytes(calibration.sizes.high)),
                     calibration.ranks.low, calibration.ranks.high, calibration.nodes.low,
                     calibration.nodes.high);
}

CalibratedInterval interval_of(const Calibration& calibration, Op op, Bytes size, int ranks,
                               int nodes, Duration forecast) {
  const auto band =
      std::find_if(calibration.bands.begin(), calibration.bands.end() - 1,
                   [&](const Calibration::Band& candidate) { return size < candidate.below; });
  const double of_size = std::log2(times_past(size.value(), calibration.sizes));
  const double doublings =
      std::max({std::min(1.0, of_size), std::log2(times_past(ranks, calibration.ranks)),
                std::log2(times_past(nodes, calibration.nodes))});
  const bool known = std::find(calibration.operations.begin(), calibration.operations.end(), op) !=
                     calibration.operations.end();
  const Strangeness& off = strangeness_of(size);
  const double further = doublings * off.per_doubling;
  const double other = known ? 0 : off.other_operation;
  const double side = nodes == 1 && calibration.nodes.low > 1    ? off.one_after_several
                      : nodes > 1 && calibration.nodes.high == 1 ? off.several_after_one
                                                                 : 0;
  // A band whose rows were all off to one side still does not exclude the forecast itself.
  const auto end = [&](double measured) {
    return std::exp(std::hypot(measured, std::hypot(further, other, side)));
  };
  return {forecast.scaled(1 / end(std::log(std::min(1.0, band->low)))),
          forecast.scaled(end(std::log(std::max(1.0, band->high)))), known && doublings == 0};
}

CalibratedInterval uncalibrated_interval(Duration forecast) {
  constexpr double factor = 1.53;
  return {forecast.scaled(1 / factor), forecast.scaled(factor), false};
}

}  // namespace lambcast
