#include "validate/calibrate/suspicions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "sim/base/error.h"
#include "validate/calibrate/calibrate.h"
#include "validate/calibrate/measured_series.h"

namespace lambcast::validate {
namespace {

// Where bandwidth rules, a description without tables is off by less than 1.6 in 90 of 100 rows
// (topologies/calibration.h).
constexpr double much_slower = 4, much_faster = 2;
// Another reading is offered where the table is off by the first factor and not by the second then.
constexpr double off_as_it_stands = 1.8, explained = 1.25;
constexpr std::size_t few_rows = 4;
constexpr double nearly_one_size = 4;

// The median of log(measured / forecast) of the large rows of a table; absent where it has none or
// cannot be read like that.
std::optional<double> offset_of(const Measurement& table, const Cluster& before, bool mpi,
                                double size_factor) {
  std::vector<double> offsets;
  try {
    MeasuredSeries series = series_of(table, before, mpi);
    for (const Row& row : table.rows) {
      if (!counts(table, row) || row.size.value() < medium_below) continue;
      const double seconds = forecast_time(series, row.size * size_factor).s();
      offsets.push_back(std::log(row.time.s() / std::max(1e-12, seconds)));
    }
  } catch (const Error&) {
    return std::nullopt;
  }
  if (offsets.empty()) return std::nullopt;
  return quantile(offsets, 0.5);
}

bool splits_ranks(Operation operation) {
  return operation == Operation::all_gather || operation == Operation::reduce_scatter ||
         operation == Operation::all_to_all;
}

// How else the table could be read, if that explains it much better.
std::optional<std::string> other_reading(const Measurement& table, const Cluster& before, bool mpi,
                                         double as_it_stands) {
  double nearest = std::min(std::abs(as_it_stands), std::log(explained));
  std::optional<std::string> found;
  const auto consider = [&](const Measurement& reading, double factor, std::string words) {
    const auto offset = offset_of(reading, before, mpi, factor);
    if (!offset || std::abs(*offset) >= nearest) return;
    nearest = std::abs(*offset);
    found = std::move(words);
  };
  if (splits_ranks(table.operation)) {
    consider(table, table.ranks, "its sizes are those of one rank, not totals");
    consider(table, 1.0 / table.ranks, "its sizes are totals times the number of ranks");
  }
  for (const Operation other :
       {Operation::all_reduce, Operation::all_gather, Operation::reduce_scatter}) {
    if (other == table.operation || !splits_ranks(other) == !splits_ranks(table.operation))
      continue;
    Measurement reading = table;
    reading.operation = other;
    consider(reading, 1, fmt::format("it is a table of {}", name_of(other)));
  }
  for (const double factor : {0.5, 2.0}) {
    Measurement reading = table;
    reading.ranks = static_cast<int>(table.ranks * factor);
    if (reading.ranks < 2) continue;
    if (table.nodes) reading.nodes = std::max(1, static_cast<int>(*table.nodes * factor));
    consider(reading, 1, fmt::format("it was measured on {} ranks", reading.ranks));
  }
  return found;
}

std::optional<std::string> too_little(const Measurement& table) {
  std::size_t rows = 0;
  double smallest = std::numeric_limits<double>::infinity(), largest = 0;
  for (const Row& row : table.rows) {
    if (!counts(table, row)) continue;
    ++rows;
    smallest = std::min(smallest, row.size.value());
    largest = std::max(largest, row.size.value());
  }
  if (rows < few_rows)
    return fmt::format("{} row{} of it count{}: too few to tell how far forecasts are off", rows,
                       rows == 1 ? "" : "s", rows == 1 ? "s" : "");
  if (largest < nearly_one_size * smallest)
    return fmt::format(
        "its sizes are nearly one, {} to {}: they cannot tell latency from bandwidth",
        to_text(Bytes(smallest)), to_text(Bytes(largest)));
  return std::nullopt;
}

}  // namespace

std::vector<std::string> suspicions_of(const Cluster& before, std::span<const Measurement> tables,
                                       bool mpi) {
  std::vector<std::string> suspicions;
  for (const Measurement& table : tables) {
    if (table.streams) continue;
    const auto say = [&](const std::string& what) {
      suspicions.push_back(fmt::format("{} over {} ranks ({}): {}.", name_of(table.operation),
                                       table.ranks, table.provenance.source, what));
    };
    if (const auto little = too_little(table)) say(*little);
    const auto offset = offset_of(table, before, mpi, 1);
    if (!offset) continue;
    if (std::abs(*offset) > std::log(off_as_it_stands)) {
      const double factor = std::exp(std::abs(*offset));
      const auto reading = other_reading(table, before, mpi, *offset);
      const char* direction = *offset > 0 ? "slower" : "faster";
      if (reading)
        say(
            fmt::format("large messages are {:.1f} times {} than such a machine is; they would not "
                        "be if {}",
                        factor, direction, *reading));
      else if (*offset > std::log(much_slower))
        say(
            fmt::format("large messages are {:.1f} times slower than such a machine is: is the "
                        "network set up right (interface, GPUDirect, all NICs in use)?",
                        factor));
      else if (*offset < -std::log(much_faster))
        say(
            fmt::format("large messages are {:.1f} times faster than the description allows: is "
                        "it of another machine?",
                        factor));
    }
  }
  return suspicions;
}

}  // namespace lambcast::validate
