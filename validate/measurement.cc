#include "validate/measurement.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "sim/base/check.h"
#include "sim/base/csv.h"

namespace lambcast::validate {
namespace {

struct Name {
  Operation operation;
  std::string_view ours;
  std::string_view bare;  // lower case without underscores, as other tools spell it
};

constexpr std::array<Name, 9> kNames{{
    {Operation::all_reduce, "all_reduce", "allreduce"},
    {Operation::all_gather, "all_gather", "allgather"},
    {Operation::reduce_scatter, "reduce_scatter", "reducescatter"},
    {Operation::all_to_all, "all_to_all", "alltoall"},
    {Operation::broadcast, "broadcast", "broadcast"},
    {Operation::send_recv, "send_recv", "sendrecv"},
    {Operation::compressed_allreduce, "compressed_allreduce", "compressedallreduce"},
    {Operation::ping_pong, "ping_pong", "pingpong"},
    {Operation::stream, "stream", "stream"},
}};

std::string bare(std::string_view text) {
  std::string letters;
  for (const char c : text) {
    if (c >= 'A' && c <= 'Z') {
      letters += static_cast<char>(c - 'A' + 'a');
    } else if (c != '_') {
      letters += c;
    }
  }
  return letters;
}

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

// "# key: value" into the measurement; returns false for a comment of any other shape.
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
  const Duration time = Duration::microseconds(positive(table, row, column));
  if (time.ps() == 0) {
    fail_input({table.name, table.lines[row], std::string(column)}, "is below a picosecond");
  }
  return time;
}

// Exact where Duration::us() is not: picoseconds over a million rounds correctly.
double microseconds(Duration d) { return static_cast<double>(d.ps()) / 1e6; }

}  // namespace

std::string_view name_of(Operation operation) {
  for (const Name& name : kNames) {
    if (name.operation == operation) return name.ours;
  }
  fail_check("operation has a name", __FILE__, __LINE__,
             fmt::format("operation {}", static_cast<int>(operation)));
}

Operation parse_operation(std::string_view text, const Where& where) {
  std::vector<std::string> allowed;
  for (const Name& name : kNames) {
    if (name.bare == bare(text)) return name.operation;
    allowed.emplace_back(name.ours);
  }
  fail_unknown(where, "collective", text, allowed);
}

double bus_factor(Operation operation, int ranks) {
  LAMBCAST_CHECK(ranks >= 1, "{} ranks", ranks);
  const double n = ranks;
  switch (operation) {
    case Operation::all_reduce:
    case Operation::compressed_allreduce:
      return 2 * (n - 1) / n;
    case Operation::all_gather:
    case Operation::reduce_scatter:
    case Operation::all_to_all:
      return (n - 1) / n;
    case Operation::broadcast:
    case Operation::send_recv:
    case Operation::ping_pong:
    case Operation::stream:
      return 1;
  }
  return 1;
}

double algbw_GBps(const Row& row) { return row.size.value() / row.time.s() / 1e9; }

double busbw_GBps(const Measurement& measurement, const Row& row) {
  return algbw_GBps(row) * bus_factor(measurement.operation, measurement.ranks);
}

Measurement read_measurement_csv(std::string_view text, std::string_view name) {
  const csv::Table table = csv::parse(text, name);
  Measurement result;
  result.provenance.kind = Kind::published;
  bool has_operation = false;
  int line = 0;
  for (const std::string& comment : table.comments) {
    read_header_line(comment, ++line, name, result, has_operation);
  }
  const std::string file(name);
  if (!has_operation) fail_input({file, 0, {}}, "has no '# collective: ...' line");
  if (result.ranks == 0) fail_input({file, 0, {}}, "has no '# ranks: ...' line");
  const bool spread = table.has("min_us") && table.has("max_us");
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    Row row;
    row.size = Bytes(positive(table, i, "size_bytes"));
    row.time = positive_time(table, i, "time_us");
    if (spread) {
      row.spread = Spread{positive_time(table, i, "min_us"), positive_time(table, i, "max_us")};
      if (row.time < row.spread->low || row.time > row.spread->high) {
        fail_input({file, table.lines[i], "time_us"}, "is not between min_us and max_us");
      }
    }
    result.rows.push_back(row);
  }
  if (result.rows.empty()) fail_input({file, 0, {}}, "has no rows");
  return result;
}

std::string write_measurement_csv(const Measurement& m) {
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
  for (const auto& [key, value] : m.notes) header(key, value);
  header("kind", name_of(m.provenance.kind));
  header("source", m.provenance.source);

  const bool spread = std::all_of(m.rows.begin(), m.rows.end(),
                                  [](const Row& row) { return row.spread.has_value(); });
  text += "size_bytes,time_us,algbw_GBps,busbw_GBps";
  text += spread ? ",min_us,max_us\n" : "\n";
  for (const Row& row : m.rows) {
    std::vector<std::string> fields{
        fmt::format("{}", row.size.value()), csv::number(microseconds(row.time)),
        fmt::format("{:.4g}", algbw_GBps(row)), fmt::format("{:.4g}", busbw_GBps(m, row))};
    if (spread) {
      fields.push_back(csv::number(microseconds(row.spread->low)));
      fields.push_back(csv::number(microseconds(row.spread->high)));
    }
    text += csv::row(fields) + "\n";
  }
  return text;
}

Duration median(std::vector<Duration> values) {
  LAMBCAST_CHECK(!values.empty(), "median of nothing");
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  if (values.size() % 2 == 1) return values[middle];
  const std::int64_t low = values[middle - 1].ps();
  return Duration::picoseconds(low + (values[middle].ps() - low) / 2);
}

Measurement merge_runs(const std::vector<Measurement>& runs) {
  LAMBCAST_CHECK(!runs.empty(), "merging no runs");
  Measurement merged = runs.front();
  for (const Measurement& run : runs) {
    const bool same = run.operation == merged.operation && run.ranks == merged.ranks &&
                      run.rows.size() == merged.rows.size();
    if (!same) fail_input({}, "runs of different measurements cannot be merged");
  }
  for (std::size_t i = 0; i < merged.rows.size(); ++i) {
    std::vector<Duration> times;
    Row& row = merged.rows[i];
    Spread spread = row.spread.value_or(Spread{row.time, row.time});
    for (const Measurement& run : runs) {
      const Row& other = run.rows[i];
      if (other.size != row.size) fail_input({}, "runs over different sizes cannot be merged");
      times.push_back(other.time);
      const Spread seen = other.spread.value_or(Spread{other.time, other.time});
      spread = {std::min(spread.low, seen.low), std::max(spread.high, seen.high)};
    }
    row.time = median(times);
    row.spread = spread;
  }
  merged.notes.emplace_back("runs", fmt::format("{} separate runs: median of their times, "
                                                "smallest min_us and largest max_us",
                                                runs.size()));
  return merged;
}

}  // namespace lambcast::validate
