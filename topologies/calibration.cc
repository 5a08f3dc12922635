#include "topologies/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/error.h"
#include "sim/collectives/algorithms.h"

namespace lambcast {
namespace {

Calibration::Range whole_range(const Table& table, std::string_view key) {
  const auto ends = table.get<std::vector<std::int64_t>>(key);
  if (ends.size() != 2 || ends[0] < 1 || ends[1] < ends[0])
    fail_input(table.where(key), "is not a range", "[lowest, highest], from 1 up");
  return {static_cast<double>(ends[0]), static_cast<double>(ends[1])};
}

double factor(const Table& table, std::string_view key) {
  const double value = table.get<double>(key);
  if (!(value > 0) || value > 1000)
    fail_input(table.where(key), fmt::format("{} is out of range", value), "above 0 to 1000");
  return value;
}

// Returns the number of doublings between `value` and the range; 0 inside it.
double doublings_past(double value, const Calibration::Range& range) {
  return std::log2(std::max({1.0, value / range.high, range.low / value}));
}

// Half widths of a size band: w, o, both values of c, s, and the values of u (calibration.h).
struct Strangeness {
  double per_doubling, other_operation, one_after_several, several_after_one, another_site;
  double of_rdma, of_sockets, nominal_rate, effective_rate;

  double uncalibrated(const NicEvidence& nic, Typical typical) const {
    const double width = uncalibrated(nic.rate, typical);
    if (nic.rate == NicRate::effective || !nic.moved) return width;
    return std::min(width, std::hypot(uncalibrated(NicRate::effective, typical), *nic.moved));
  }

  double uncalibrated(NicRate rate, Typical typical) const {
    const double without = rate == NicRate::effective ? effective_rate : nominal_rate;
    if (typical == Typical::none) return without;
    // Few fabrics show the rate of one stream, so the width over sockets stays the same even if the
    // NIC's effective rate was measured.
    if (typical == Typical::socket && rate == NicRate::nominal) return of_sockets;
    return std::min(without, typical == Typical::rdma ? of_rdma : of_sockets);
  }
};

// A band whose fit is off by more than this factor, exp(0.5) = 1.65, does not count as calibrated.
constexpr double poor_fit = 0.5;

constexpr double most_ranks = 32;  // largest number of ranks in the public tables

const Strangeness& strangeness_of(Bytes size, int ranks) {
  static constexpr Strangeness small{0.75, 0.4, 1.15, 1.15, 0.35, 0.8, 1.3, 1.8, 1.8},
      medium{0.75, 0.3, 0.75, 0.8, 0.3, 0.72, 1.3, 1.8, 1.8},
      large{0.25, 0.2, 0.55, 0.75, 0.26, 0.42, 0.9, 1, 0.55};
  const double alike = size.value() * std::min(1.0, most_ranks / ranks);
  return alike < small_below ? small : alike < medium_below ? medium : large;
}

// Returns whether a list of measured names applies to `name`. An empty list means the library's own
// choices; it applies to no name if the choice has changed.
bool holds(const std::vector<std::string>& names, std::string_view name, bool choice_changed) {
  if (names.empty() || name.empty()) return !choice_changed;
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Returns the names of a list, or an empty list if the key is absent.
std::vector<std::string> names_of(const Table& table, std::string_view key, const char* what,
                                  const std::vector<std::string>& known) {
  if (!table.has(key)) return {};
  const auto names = table.get<std::vector<std::string>>(key);
  for (const std::string& name : names)
    if (std::find(known.begin(), known.end(), name) == known.end())
      fail_unknown(table.where(key), what, name, known);
  return names;
}

// Distance to the nearest measured layout: doublings, and c as `side`.
struct Distance {
  double doublings = 0, side = 0;
};

Distance distance_of(const Calibration& calibration, int ranks, int nodes, const Strangeness& off) {
  const double gpus_per_node = static_cast<double>(ranks) / nodes;
  const auto squared = [&](const Distance& distance) {
    return distance.doublings * std::pow(off.per_doubling, 2) + std::pow(distance.side, 2);
  };
  std::optional<Distance> nearest;
  for (const Calibration::MeasuredNodes& layout : calibration.layouts) {
    const Distance distance{doublings_past(nodes, layout.nodes) +
                                std::abs(std::log2(gpus_per_node / layout.gpus_per_node)),
                            nodes == 1 && layout.nodes.low > 1    ? off.one_after_several
                            : nodes > 1 && layout.nodes.high == 1 ? off.several_after_one
                                                                  : 0};
    if (!nearest || squared(distance) < squared(*nearest)) nearest = distance;
  }
  return *nearest;
}

}  // namespace

std::optional<Calibration> decode_calibration(const Table& table) {
  if (table.keys().empty()) return std::nullopt;
  Calibration calibration;
  calibration.source = table.get_or<std::string>("source", "");
  if (table.has("machine"))
    calibration.another_machine = table.choice("machine", {"this", "another"}) == 1;
  if (auto preset = decode_calibration(table.table("preset")))
    calibration.preset = std::make_shared<const Calibration>(std::move(*preset));
  calibration.backend =
      table.choice("library", {"nccl", "mpi"}) == 1 ? Backend::mpi_host : Backend::nccl;
  const auto& names = op_names();
  for (const std::string& name : table.get<std::vector<std::string>>("operations")) {
    const auto found = std::find(names.begin(), names.end(), name);
    if (found == names.end()) fail_unknown(table.where("operations"), "operation", name, names);
    calibration.operations.push_back(static_cast<Op>(found - names.begin()));
  }
  calibration.protocols =
      names_of(table, "protocols", "protocol of NCCL", {"LL", "LL128", "Simple"});
  // These keys do not affect forecasts; `lambcast validate` compares them with its log.
  table.find<std::vector<std::string>>("fitted_tables");
  calibration.sizes = {table.get<Bytes>("smallest").value(), table.get<Bytes>("largest").value()};
  if (!(calibration.sizes.low > 0) || calibration.sizes.high < calibration.sizes.low)
    fail_input(table.where("largest"), "is below the smallest size");
  for (const Table& layout : table.tables("layouts")) {
    calibration.layouts.push_back(
        {static_cast<int>(layout.integer("gpus_per_node", 1, 1024)), whole_range(layout, "nodes")});
  }
  if (calibration.layouts.empty())
    fail_input(table.where("layouts"),
               "is empty: an earlier version wrote this calibration; calibrate again");
  for (const Table& band : table.tables("bands")) {
    const double below =
        band.find<Bytes>("below").value_or(Bytes(std::numeric_limits<double>::infinity())).value();
    if (!calibration.bands.empty() && below <= calibration.bands.back().below.value())
      fail_input(band.where("below"), "bands must be in order of size");
    calibration.bands.push_back({Bytes(below), factor(band, "low"), factor(band, "high"),
                                 names_of(band, "algorithms", "algorithm", algorithm_names())});
    if (calibration.bands.back().low > calibration.bands.back().high)
      fail_input(band.where("high"), "is below low");
  }
  if (calibration.bands.empty()) fail_input(table.where("bands"), "is empty");
  return calibration;
}

std::string describe(const Calibration& calibration) {
  std::vector<std::string_view> operations;
  for (const Op op : calibration.operations) operations.push_back(name_of(op));
  std::string layouts;
  for (const Calibration::MeasuredNodes& layout : calibration.layouts) {
    const auto [fewest, most] = layout.nodes;
    const bool first = layouts.empty();
    layouts += fmt::format("{}{}", first ? "" : ", ", layout.gpus_per_node);
    if (first) layouts += layout.gpus_per_node == 1 ? " GPU a node" : " GPUs a node";
    layouts +=
        fewest == most ? fmt::format(" on {}", most) : fmt::format(" on {} to {}", fewest, most);
    if (first) layouts += most == 1 ? " node" : " nodes";
  }
  return fmt::format("{}; {} to {}; {}", fmt::join(operations, ", "),
                     to_text(Bytes(calibration.sizes.low)), to_text(Bytes(calibration.sizes.high)),
                     layouts);
}

std::string_view in_words(Ground ground) {
  switch (ground) {
    case Ground::calibrated:
      return "calibrated";
    case Ground::same_hardware:
      return "preset of the same hardware";
    case Ground::algorithm:
      return "prior: algorithm not measured";
    case Ground::extrapolated:
      return "extrapolated";
    case Ground::none:
      return "not calibrated";
  }
  return "";
}

CalibratedInterval interval_of(const Calibration& calibration, Op op, Bytes size, int ranks,
                               int nodes, const NicEvidence& nic, Typical typical,
                               Duration forecast, const RunBy& by, const Departure& departure) {
  const auto band =
      std::find_if(calibration.bands.begin(), calibration.bands.end() - 1,
                   [&](const Calibration::Band& candidate) { return size < candidate.below; });
  const Strangeness& off = strangeness_of(size, ranks);
  const Distance distance = distance_of(calibration, ranks, nodes, off);
  const double of_size = std::min(1.0, doublings_past(size.value(), calibration.sizes));
  const double doublings = std::max(of_size, distance.doublings);
  const bool known = std::find(calibration.operations.begin(), calibration.operations.end(), op) !=
                     calibration.operations.end();
  const double further = std::sqrt(doublings) * off.per_doubling;
  const bool taken = holds(band->algorithms, by.algorithm, departure.choice) &&
                     holds(calibration.protocols, by.protocol, departure.choice);
  const double other = std::hypot(known ? 0 : off.other_operation,
                                  calibration.another_machine ? off.another_site : 0);
  const double low = -std::log(std::min(1.0, band->low)),
               high = std::log(std::max(1.0, band->high));
  // The interval includes the forecast itself even if all errors of the band have the same sign.
  const auto end = [&](double measured) {
    const double widened = std::hypot(std::hypot(measured, departure.of(nodes)),
                                      std::hypot(further, other, distance.side));
    const double without = off.uncalibrated(nic, typical);
    return std::exp(taken ? std::max(measured, std::min(widened, without)) : without);
  };
  const bool inside = known && doublings == 0;
  const Ground ground = inside && !taken                            ? Ground::algorithm
                        : !inside || std::max(low, high) > poor_fit ? Ground::extrapolated
                        : calibration.another_machine               ? Ground::same_hardware
                                                                    : Ground::calibrated;
  const CalibratedInterval own{forecast.scaled(1 / end(low)), forecast.scaled(end(high)),
                               ground == Ground::calibrated, ground};
  if (own.calibrated || !calibration.preset) return own;
  const CalibratedInterval before = interval_of(*calibration.preset, op, size, ranks, nodes, nic,
                                                typical, forecast, by, departure);
  return before.high / before.low < own.high / own.low ? before : own;
}

CalibratedInterval uncalibrated_interval(Bytes size, int ranks, const NicEvidence& nic,
                                         Typical typical, Duration forecast) {
  const double factor = std::exp(strangeness_of(size, ranks).uncalibrated(nic, typical));
  return {forecast.scaled(1 / factor), forecast.scaled(factor), false, Ground::none};
}

}  // namespace lambcast
