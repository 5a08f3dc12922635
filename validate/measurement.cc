#include "validate/measurement.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "sim/base/check.h"
#include "sim/base/printable.h"

namespace lambcast::validate {
namespace {

struct Name {
  Operation operation;
  std::string_view ours;
  std::string_view bare;  // lower case without underscores, as spelled by other tools
};

constexpr std::array<Name, 10> kNames{{
    {Operation::all_reduce, "all_reduce", "allreduce"},
    {Operation::all_gather, "all_gather", "allgather"},
    {Operation::reduce_scatter, "reduce_scatter", "reducescatter"},
    {Operation::all_to_all, "all_to_all", "alltoall"},
    {Operation::broadcast, "broadcast", "broadcast"},
    {Operation::send_recv, "send_recv", "sendrecv"},
    {Operation::reduce, "reduce", "reduce"},
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

}  // namespace

std::string_view name_of(Operation operation) {
  for (const Name& name : kNames) {
    if (name.operation == operation) return name.ours;
  }
  fail_check("operation has a name", __FILE__, __LINE__,
             fmt::format("operation {}", static_cast<int>(operation)));
}

Operation parse_operation(std::string_view text, const Where& where,
                          std::optional<Operation> left_out) {
  std::vector<std::string> allowed;
  for (const Name& name : kNames) {
    if (name.operation == left_out) continue;
    if (name.bare == bare(text)) return name.operation;
    allowed.emplace_back(name.ours);
  }
  fail_unknown(where, "collective", text, allowed);
}

Backend parse_measured_backend(std::string_view word, const Where& where) {
  for (const Backend backend : {Backend::nccl, Backend::mpi_host})
    if (traits_of(backend).word == word) return backend;
  fail_input(where, fmt::format("unknown backend '{}'", printable(word)), "nccl, mpi");
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
    case Operation::reduce:
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

std::vector<Measurement> without_repeats(std::span<const Measurement> tables) {
  const auto what = [](const Measurement& table) {
    return std::tie(table.operation, table.ranks, table.nodes, table.gpus_per_node, table.algorithm,
                    table.protocol, table.backend, table.streams, table.staging);
  };
  const auto same = [](const Row& a, const Row& b) { return a.size == b.size && a.time == b.time; };
  std::vector<Measurement> distinct;
  for (const Measurement& table : tables) {
    Measurement once = table;
    once.rows.clear();
    for (const Row& row : table.rows) {
      const auto of_size = [&](const Row& other) { return other.size == row.size; };
      if (std::any_of(once.rows.begin(), once.rows.end(), of_size)) continue;
      std::vector<Duration> times;
      for (const Row& other : table.rows)
        if (of_size(other)) times.push_back(other.time);
      once.rows.push_back({row.size, median(std::move(times)), row.spread});
    }
    const auto again = [&](const Measurement& earlier) {
      return what(earlier) == what(once) && std::equal(earlier.rows.begin(), earlier.rows.end(),
                                                       once.rows.begin(), once.rows.end(), same);
    };
    if (std::none_of(distinct.begin(), distinct.end(), again)) distinct.push_back(std::move(once));
  }
  return distinct;
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
