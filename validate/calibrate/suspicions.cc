#include "validate/calibrate/suspicions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "sim/base/error.h"
#include "sim/base/sort_stably.h"
#include "validate/calibrate/calibrate.h"
#include "validate/calibrate/measured_series.h"

namespace lambcast::validate {
namespace {

constexpr std::size_t few_rows = 4;
constexpr double nearly_one_size = 4;
constexpr double column_tolerance = 0.015;  // relative, for bandwidths printed with two decimals
constexpr double large_message = 1048576;   // size from which on bandwidth matters
constexpr double student_freedom = 4;
constexpr double decisive = 4;  // least gain in cost: exp(4 / 2), or seven times as likely
constexpr double fits = 6;      // highest cost of a reading that is proposed as the true one
// Costs added to explanations that are rarer than a wrong unit of sizes or times: only large
// messages are slow (which networks often are) or fast; another operation; another layout.
constexpr double slow_alone = 2, fast_alone = 4, other_operation = 1, other_layout = 2;
constexpr double of_one_in_200 = 2.81;  // one of 200 normal values is further off (in sigma)
constexpr double normal_90 = 1.645;     // half-width of a 90 % interval in standard deviations
constexpr std::size_t large = 2;        // index of the band of large sizes

// One interpretation of a table.
struct Reading {
  Measurement table;
  double sizes = 1, times = 1;  // factors applied to the table
  double rare = 0;              // penalty for being rare
  std::string words;
};

struct Misfit {
  double cost = 0;
  std::array<std::optional<double>, 3> offset, z, width;  // by band
};

double cost_of(double z) { return student_freedom * std::log1p(z * z / student_freedom); }

// Returns the misfit of a reading; nothing if the table cannot be read that way.
std::optional<Misfit> misfit_of(const Reading& reading, const Cluster& before, Backend backend) {
  std::array<std::vector<double>, 3> offsets, widths;
  try {
    MeasuredSeries series = series_of(reading.table, before, backend);
    const Op op = series.message ? series.message->request.op : series.parts.front().op;
    const ProcessGroup group{series.ranks, series.gpus_per_node};
    for (const Row& row : reading.table.rows) {
      if (!counts(reading.table, row)) continue;
      const Bytes size = row.size * reading.sizes;
      const Duration forecast = std::max(forecast_time(series, size), Duration::picoseconds(1));
      // No algorithm is passed, so the interval covers any of them: a wrong table seldom matches
      // the forecast of another algorithm.
      const CalibratedInterval interval = interval_of(before, backend, op, size, group, forecast);
      const std::size_t band = size.value() < small_below ? 0 : size.value() < medium_below ? 1 : 2;
      offsets[band].push_back(std::log(row.time.s() * reading.times / forecast.s()));
      widths[band].push_back(std::log(interval.high.s() / interval.low.s()) / 2 / normal_90);
    }
  } catch (const Error&) {
    return std::nullopt;
  }
  Misfit misfit;
  for (std::size_t band = 0; band < offsets.size(); ++band) {
    if (offsets[band].empty()) continue;
    misfit.offset[band] = quantile(offsets[band], 0.5);
    misfit.width[band] = quantile(widths[band], 0.5);
    misfit.z[band] = *misfit.offset[band] / *misfit.width[band];
    misfit.cost += cost_of(*misfit.z[band]);
  }
  return misfit;
}

bool is_about(double value, double expected) {
  return std::abs(value / expected - 1) < column_tolerance;
}

bool splits_ranks(Operation operation) {
  return operation == Operation::all_gather || operation == Operation::reduce_scatter ||
         operation == Operation::all_to_all;
}

void add_other_operations(std::vector<Reading>& readings, const Measurement& table) {
  for (const Operation other : {Operation::all_reduce, Operation::all_gather,
                                Operation::reduce_scatter, Operation::all_to_all}) {
    if (other == table.operation || table.operation == Operation::compressed_allreduce) continue;
    Measurement reading = table;
    reading.operation = other;
    readings.push_back(
        {reading, 1, 1, other_operation, fmt::format("it is a table of {}", name_of(other))});
  }
}

void add_other_ranks(std::vector<Reading>& readings, const Measurement& table) {
  const int nodes = nodes_of(table), per_node = table.ranks / nodes;
  const auto add = [&](int other_nodes, int other_per_node) {
    if (other_nodes < 1 || other_per_node < 1 || other_nodes * other_per_node < 2) return;
    Measurement reading = table;
    reading.ranks = other_nodes * other_per_node;
    reading.nodes = other_nodes;
    reading.gpus_per_node = other_per_node;
    readings.push_back({reading, 1, 1, other_layout,
                        fmt::format("it was measured on {} ranks over {} node{}", reading.ranks,
                                    other_nodes, other_nodes == 1 ? "" : "s")});
  };
  add(per_node, nodes);
  for (const double of_nodes : {0.25, 0.5, 1.0, 2.0, 4.0})
    for (const double of_node : {0.25, 0.5, 1.0, 2.0, 4.0})
      if (of_nodes != 1 || of_node != 1)
        add(static_cast<int>(nodes * of_nodes), static_cast<int>(per_node * of_node));
}

std::vector<Reading> other_readings(const Measurement& table) {
  std::vector<Reading> readings;
  if (splits_ranks(table.operation)) {
    readings.push_back({table, static_cast<double>(table.ranks), 1, 0,
                        "its sizes are those of one rank, not totals"});
    readings.push_back(
        {table, 1.0 / table.ranks, 1, 0, "its sizes are totals times the number of ranks"});
  }
  readings.push_back({table, 1, 1e3, 0, "its times are milliseconds, not microseconds"});
  readings.push_back({table, 1, 1e6, 0, "its times are seconds, not microseconds"});
  readings.push_back({table, 1, 1e-3, 0, "its times are nanoseconds, not microseconds"});
  const double factor = bus_factor(table.operation, table.ranks);
  if (factor > 1)
    readings.push_back({table, 1, factor, 0, "its times were taken from busbw, not from algbw"});
  add_other_operations(readings, table);
  add_other_ranks(readings, table);
  // A reading that contradicts the printed bandwidths is ruled out.
  if (table.printed && is_about(table.printed->bus_over_alg, factor))
    std::erase_if(readings, [&](const Reading& reading) {
      return !is_about(bus_factor(reading.table.operation, reading.table.ranks), factor);
    });
  return readings;
}

std::optional<std::string> columns_apart(const Measurement& table) {
  if (!table.printed) return std::nullopt;
  const auto [bus, rate] = *table.printed;
  const double factor = bus_factor(table.operation, table.ranks);
  if (!is_about(bus, factor))
    return fmt::format(
        "its busbw is {:.3f} times its algbw, where {} over {} ranks has {:.3f}: the operation or "
        "the number of ranks is another, or the columns are swapped",
        bus, name_of(table.operation), table.ranks, factor);
  if (is_about(rate, 1)) return std::nullopt;
  const char* why = is_about(rate, 1e3) || is_about(rate, 1e-3) ? "its times are not microseconds"
                    : is_about(rate, table.ranks) ? "its sizes are those of one rank, not totals"
                    : is_about(rate, 1.0 / table.ranks)
                        ? "its sizes are totals times the number of ranks"
                        : "its columns do not belong together";
  return fmt::format("its algbw is {:.3g} times its sizes over its times: {}", rate, why);
}

std::optional<std::string> too_little(std::span<const Row> rows) {
  if (rows.size() < few_rows)
    return fmt::format("{} row{} of it count{}: too few to tell how far forecasts are off",
                       rows.size(), rows.size() == 1 ? "" : "s", rows.size() == 1 ? "s" : "");
  const Bytes smallest = rows.front().size, largest = rows.back().size;
  if (largest < smallest * nearly_one_size)
    return fmt::format(
        "its sizes are nearly one, {} to {}: they cannot tell latency from bandwidth",
        to_text(smallest), to_text(largest));
  if (largest.value() < large_message)
    return fmt::format("its largest message is {}: it does not determine the bandwidth",
                       to_text(largest));
  return std::nullopt;
}

// Returns whether the time falls by more than 30 % in at least a quarter of the pairs of
// consecutive large sizes. There must be three pairs or more.
bool in_disorder(std::span<const Row> rows) {
  int pairs = 0, falling = 0;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i - 1].size.value() < large_message) continue;
    ++pairs;
    falling += rows[i].time.s() < 0.7 * rows[i - 1].time.s() ? 1 : 0;
  }
  return pairs >= 3 && falling * 4 >= pairs;
}

std::string how_far(const Misfit& misfit, std::size_t band) {
  static constexpr const char* messages[] = {"small", "medium", "large"};
  return fmt::format("{} messages are {:.3g} times {} than such a machine is", messages[band],
                     std::exp(std::abs(*misfit.offset[band])),
                     *misfit.offset[band] > 0 ? "slower" : "faster");
}

// Describes the misfit in the band with the largest one.
std::string how_far(const Misfit& misfit) {
  const auto size_of = [&](std::size_t band) { return std::abs(misfit.z[band].value_or(0)); };
  std::size_t worst = 0;
  for (std::size_t band = 1; band < misfit.z.size(); ++band)
    if (size_of(band) > size_of(worst)) worst = band;
  return how_far(misfit, worst);
}

// Returns the rate of each NIC for the largest message, as a hint at the cause.
std::string rate_of_nics(const Measurement& table, const Cluster& before) {
  constexpr double of_sockets_GBps = 6;  // a node of GH200 whose NCCL fell back to TCP reaches 5.4
  const int nodes = nodes_of(table, before);
  if (nodes < 2) return {};
  const auto largest = std::max_element(table.rows.begin(), table.rows.end(),
                                        [](const Row& a, const Row& b) { return a.size < b.size; });
  const int per_node = table.ranks / nodes;
  const double leaving =
      table.operation == Operation::all_to_all
          ? static_cast<double>(per_node) * (table.ranks - per_node) / table.ranks
          : bus_factor(table.operation, table.ranks);
  const double node_GBps = leaving * largest->size.value() / largest->time.s() * 1e-9;
  const double nic_GBps = node_GBps / nics_in_use(before, per_node);
  return fmt::format(" ({:.3g} GB/s a NIC, {:.2g} % of its name plate{})", nic_GBps,
                     nic_GBps * 1e11 / before.nic_nominal.value.value(),
                     before.network == NetworkKind::rdma && node_GBps < of_sockets_GBps
                         ? ", as TCP sockets do"
                         : "");
}

// Returns the cost of a reading whose intervals are wider than those of the table as given. A wide
// interval holds almost any table, so the density of its forecast falls with the width.
double cost_of_width(const Misfit& reading, const Misfit& as_it_stands) {
  double cost = 0;
  for (std::size_t band = 0; band < reading.width.size(); ++band)
    if (reading.width[band] && as_it_stands.width[band])
      cost += std::max(0.0, 2 * std::log(*reading.width[band] / *as_it_stands.width[band]));
  return cost;
}

// Returns the best explanation of a table that does not match the machine: another reading, or only
// the large messages being slow or fast.
std::optional<std::string> unlike_the_machine(const Measurement& table, const Cluster& before,
                                              Backend backend) {
  const auto as_it_stands = misfit_of({table, 1, 1, 0, {}}, before, backend);
  if (!as_it_stands) return std::nullopt;
  const bool off = as_it_stands->z[large] && std::abs(*as_it_stands->z[large]) > of_one_in_200;
  double least = std::min(fits, as_it_stands->cost - decisive);
  if (off)
    least = std::min(least, (*as_it_stands->z[large] > 0 ? slow_alone : fast_alone) +
                                cost_of(as_it_stands->z[0].value_or(0)));
  std::string found;
  if (least > 0) {
    for (const Reading& reading : other_readings(table)) {
      const auto misfit = misfit_of(reading, before, backend);
      if (!misfit) continue;
      const double cost = misfit->cost + reading.rare + cost_of_width(*misfit, *as_it_stands);
      if (cost > least) continue;
      least = cost;
      found = reading.words;
    }
  }
  if (!found.empty())
    return fmt::format("{}; they would not be if {}", how_far(*as_it_stands), found);
  if (!off) return std::nullopt;
  if (*as_it_stands->z[large] < 0)
    return how_far(*as_it_stands, large) + ": is it of another machine?";
  return how_far(*as_it_stands, large) + rate_of_nics(table, before) +
         ": is the network set up right (interface, GPUDirect, all NICs in use)?";
}

}  // namespace

std::vector<std::string> suspicions_of(const Cluster& before, std::span<const Measurement> tables,
                                       Backend backend) {
  std::vector<std::string> suspicions;
  for (const Measurement& table : tables) {
    if (table.streams) continue;
    const auto say = [&](const std::optional<std::string>& what) {
      if (what)
        suspicions.push_back(fmt::format("{} over {} ranks ({}): {}{}", name_of(table.operation),
                                         table.ranks, table.provenance.source, *what,
                                         what->ends_with('?') ? "" : "."));
    };
    std::vector<Row> rows;
    std::copy_if(table.rows.begin(), table.rows.end(), std::back_inserter(rows),
                 [&](const Row& row) { return counts(table, row); });
    sort_stably(rows, {}, &Row::size);
    if (rows.empty()) continue;
    say(columns_apart(table));
    say(too_little(rows));
    if (in_disorder(rows)) say("its times do not grow with its sizes: rows are mixed up");
    say(unlike_the_machine(table, before, backend));
  }
  return suspicions;
}

}  // namespace lambcast::validate
