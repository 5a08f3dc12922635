#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "sim/base/csv.h"
#include "validate/measurement.h"

namespace lambcast::validate {
namespace {

int parse_count(std::string_view text, const Where& where) {
  int value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || end != text.data() + text.size() || value < 1) {
    fail_input(where, fmt::format("'{}' is not a count", text), "a whole number from 1");
  }
  return value;
}

Kind parse_kind(std::string_view text, const Where& where) {
  for (const Kind kind : {Kind::measured, Kind::published, Kind::fitted, Kind::assumed}) {
    if (name_of(kind) == text) return kind;
  }
  fail_input(where, fmt::format("unknown kind '{}'", text), "measured, published, fitted, assumed");
}

// Reads "# key: value" into the measurement; any other comment becomes a note without value.
void read_header_line(std::string_view comment, int line, std::string_view file, Measurement& into,
                      bool& has_operation) {
  const std::size_t start = comment.find_first_not_of("# ");
  if (start == std::string_view::npos) return;
  comment.remove_prefix(start);
  const std::size_t colon = comment.find(": ");
  const std::string key(comment.substr(0, colon));
  std::string value(colon == std::string_view::npos ? "" : comment.substr(colon + 2));
  while (!value.empty() && (value.back() == '\r' || value.back() == ' ')) value.pop_back();
  const Where where{std::string(file), line, key};
  if (key == "collective") {
    into.operation = parse_operation(value, where);
    has_operation = true;
  } else if (key == "ranks") {
    into.ranks = parse_count(value, where);
  } else if (key == "nodes") {
    into.nodes = parse_count(value, where);
  } else if (key == "gpus_per_node") {
    into.gpus_per_node = parse_count(value, where);
  } else if (key == "algorithm") {
    into.algorithm = value;
  } else if (key == "protocol") {
    into.protocol = value;
  } else if (key == "backend") {
    into.backend = parse_measured_backend(value, where);
  } else if (key == "streams") {
    into.streams = parse_count(value, where);
  } else if (key == "staging") {
    if (value != "none") into.staging = value;
  } else if (key == "kind") {
    into.provenance.kind = parse_kind(value, where);
  } else if (key == "source") {
    into.provenance.source = value;
  } else {
    into.notes.emplace_back(key, value);
  }
}

double positive(const csv::Table& table, std::size_t row, std::string_view column) {
  const double value = table.number(row, column);
  if (value <= 0) {
    fail_input({table.name, table.lines[row], std::string(column)},
               fmt::format("{} is not above zero", value));
  }
  return value;
}

Duration positive_time(const csv::Table& table, std::size_t row, std::string_view column) {
  constexpr double longest_us = 9e12;
  const double us = positive(table, row, column);
  if (us > longest_us)
    fail_input({table.name, table.lines[row], std::string(column)},
               fmt::format("{} us is over 104 days", us));
  const Duration time = Duration::microseconds(us);
  if (time.ps() == 0) {
    fail_input({table.name, table.lines[row], std::string(column)}, "is below a picosecond");
  }
  return time;
}

// Returns the number, or 0 for a text: no other code reads these columns, so they may contain any
// text.
double printed_number(const std::string& text) {
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  return status == std::errc{} ? value : 0;
}

// Returns the medians of both ratios over the rows of 1 GB/s or more, for which two printed
// decimals are enough.
std::optional<PrintedBandwidths> printed_bandwidths(const csv::Table& table,
                                                    const std::vector<Row>& rows) {
  if (!table.has("algbw_GBps") || !table.has("busbw_GBps")) return std::nullopt;
  std::vector<double> bus, rate;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const double alg = printed_number(table.text(i, "algbw_GBps"));
    const double of_bus = printed_number(table.text(i, "busbw_GBps"));
    if (alg < 1 || of_bus <= 0) continue;
    bus.push_back(of_bus / alg);
    rate.push_back(alg / algbw_GBps(rows[i]));
  }
  if (bus.empty()) return std::nullopt;
  const auto middle = [](std::vector<double>& values) {
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), at, values.end());
    return *at;
  };
  return PrintedBandwidths{middle(bus), middle(rate)};
}

// More exact than Duration::us(): dividing picoseconds by a million rounds correctly.
double microseconds(Duration d) { return static_cast<double>(d.ps()) / 1e6; }

// Reads the time of a row and its spread from the columns of one placement.
Row read_row(const csv::Table& table, std::size_t i, const char* time, const char* low,
             const char* high) {
  Row row{Bytes(positive(table, i, "size_bytes")), positive_time(table, i, time), {}};
  if (!table.has(low) || !table.has(high)) return row;
  row.spread = Spread{positive_time(table, i, low), positive_time(table, i, high)};
  if (row.time < row.spread->low || row.time > row.spread->high)
    fail_input({table.name, table.lines[i], time},
               fmt::format("is not between {} and {}", low, high));
  return row;
}

}  // namespace

Measurement read_measurement_csv(std::string_view text, std::string_view name,
                                 std::optional<Operation> operation, std::optional<int> ranks,
                                 bool in_place) {
  const csv::Table table = csv::parse(text, name);
  Measurement result;
  result.provenance.kind = Kind::published;
  result.operation = operation.value_or(Operation::all_reduce);
  result.ranks = ranks.value_or(0);
  bool has_operation = operation.has_value();
  int line = 0;
  for (const std::string& comment : table.comments) {
    read_header_line(comment, ++line, name, result, has_operation);
  }
  const std::string file(name);
  if (!has_operation)
    fail_input({file, 0, {}}, "has no '# collective: ...' line: name it with --op");
  if (result.ranks == 0)
    fail_input({file, 0, {}}, "has no '# ranks: ...' line: give them with --ranks");
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    for (const char* wrong : {"wrong", "in_place_wrong"})
      if (table.has(wrong) && !table.text(i, wrong).empty() && table.number(i, wrong) > 0)
        fail_input({file, table.lines[i], wrong},
                   fmt::format("{} elements of the result are wrong", table.text(i, wrong)));
    result.rows.push_back(read_row(table, i, "time_us", "min_us", "max_us"));
  }
  if (result.rows.empty()) fail_input({file, 0, {}}, "has no rows");
  result.printed = printed_bandwidths(table, result.rows);
  if (in_place && table.has("in_place_us"))
    for (std::size_t i = 0; i < table.rows.size(); ++i)
      result.rows[i] = read_row(table, i, "in_place_us", "in_place_min_us", "in_place_max_us");
  return result;
}

std::string measurement_csv_comments(const Measurement& m) {
  std::string text;
  const auto header = [&](std::string_view key, std::string_view value) {
    text += fmt::format("# {}: {}\n", key, value);
  };
  header("collective", name_of(m.operation));
  header("ranks", std::to_string(m.ranks));
  if (m.nodes) header("nodes", std::to_string(*m.nodes));
  if (m.gpus_per_node) header("gpus_per_node", std::to_string(*m.gpus_per_node));
  if (m.algorithm) header("algorithm", *m.algorithm);
  if (m.protocol) header("protocol", *m.protocol);
  if (m.backend) header("backend", traits_of(*m.backend).word);
  if (m.streams) header("streams", std::to_string(*m.streams));
  if (m.staging) header("staging", *m.staging);
  for (const auto& [key, value] : m.notes) header(key, value);
  header("kind", name_of(m.provenance.kind));
  header("source", m.provenance.source);
  return text;
}

std::string measurement_csv_columns(bool spread) {
  return std::string("size_bytes,time_us,algbw_GBps,busbw_GBps") + (spread ? ",min_us,max_us" : "");
}

std::string measurement_csv_times(const Row& row, bool spread) {
  std::string times = csv::number(microseconds(row.time));
  if (spread)
    times += fmt::format(",{},{}", csv::number(microseconds(row.spread->low)),
                         csv::number(microseconds(row.spread->high)));
  return times;
}

std::string measurement_csv_row(const Measurement& m, const Row& row, bool spread) {
  std::vector<std::string> fields{
      fmt::format("{}", row.size.value()), csv::number(microseconds(row.time)),
      fmt::format("{:.4g}", algbw_GBps(row)), fmt::format("{:.4g}", busbw_GBps(m, row))};
  if (spread) {
    fields.push_back(csv::number(microseconds(row.spread->low)));
    fields.push_back(csv::number(microseconds(row.spread->high)));
  }
  return csv::row(fields);
}

std::string write_measurement_csv(const Measurement& m) {
  const bool spread = std::all_of(m.rows.begin(), m.rows.end(),
                                  [](const Row& row) { return row.spread.has_value(); });
  std::string text = measurement_csv_comments(m) + measurement_csv_columns(spread) + "\n";
  for (const Row& row : m.rows) text += measurement_csv_row(m, row, spread) + "\n";
  return text;
}

}  // namespace lambcast::validate
