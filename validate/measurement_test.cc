#include "validate/measurement.h"

#include <catch2/catch.hpp>

using namespace lambcast;
using namespace lambcast::validate;

namespace {

const char* const kTable =
    "# collective: alltoall\n"
    "# ranks: 4\n"
    "# nodes: 2\n"
    "# gpus_per_node: 2\n"
    "# gpu: H20-3e\n"
    "# a line without a colon pair\n"
    "# source: somewhere\n"
    "size_bytes,time_us,algbw_GBps,busbw_GBps\n"
    "1048576,52.94,19.81,14.85\n"
    "2097152,72.12,29.08,21.81\n";

std::string refusal(std::string text, std::string_view from, std::string_view to) {
  text.replace(text.find(from), from.size(), to);
  try {
    read_measurement_csv(text, "t.csv");
  } catch (const Error& error) {
    CHECK(error.code() == Exit::usage);
    return error.what();
  }
  return "accepted";
}

TEST_CASE("measurement: a repeated measurement counts once") {
  Measurement table = read_measurement_csv(kTable, "t.csv");
  const Row first = table.rows.front();
  table.rows.push_back({first.size, first.time * 3, {}});
  table.rows.push_back({first.size, first.time * 9, {}});
  const Measurement again = table;
  Measurement other = table;
  other.rows[1].time = other.rows[1].time * 2;
  const auto distinct = without_repeats(std::vector{table, again, other});
  REQUIRE(distinct.size() == 2);
  REQUIRE(distinct[0].rows.size() == 2);
  CHECK(distinct[0].rows[0].time == first.time * 3);
  CHECK(distinct[0].rows[1].time == table.rows[1].time);
}

}  // namespace

TEST_CASE("bus factors follow nccl-tests") {
  // Factors for 8 ranks: all_reduce 2 * 7 / 8, block collectives 7 / 8, others 1.
  CHECK(bus_factor(Operation::all_reduce, 8) == 1.75);
  CHECK(bus_factor(Operation::compressed_allreduce, 8) == 1.75);
  CHECK(bus_factor(Operation::all_gather, 8) == 0.875);
  CHECK(bus_factor(Operation::reduce_scatter, 8) == 0.875);
  CHECK(bus_factor(Operation::all_to_all, 8) == 0.875);
  CHECK(bus_factor(Operation::broadcast, 8) == 1);
  CHECK(bus_factor(Operation::send_recv, 8) == 1);
  CHECK(bus_factor(Operation::reduce, 8) == 1);
  CHECK(bus_factor(Operation::all_reduce, 1) == 0);
}

TEST_CASE("operations go by our names and by those of nccl-tests") {
  for (const char* name : {"all_reduce", "AllReduce", "allreduce"}) {
    CHECK(parse_operation(name, {}) == Operation::all_reduce);
  }
  CHECK(parse_operation("alltoall", {}) == Operation::all_to_all);
  CHECK(name_of(Operation::send_recv) == "send_recv");
  CHECK_THROWS_WITH(parse_operation("all_reduc", {"f", 3, "op"}),
                    Catch::Contains("f:3: op: unknown collective 'all_reduc', did you mean "
                                    "'all_reduce'?"));
}

TEST_CASE("ratios of the printed bandwidths of a table to its times are recorded") {
  const Measurement m = read_measurement_csv(kTable, "t.csv");
  REQUIRE(m.printed);
  CHECK(m.printed->bus_over_alg == Approx(0.75).epsilon(0.001));
  CHECK(m.printed->alg_over_rate == Approx(1).epsilon(0.001));
  // Columns that no other code reads may contain anything, or too few digits for a check.
  std::string words = kTable;
  for (const char* number : {"19.81", "29.08"}) words.replace(words.find(number), 5, "N/A");
  CHECK_FALSE(read_measurement_csv(words, "t.csv").printed);
}

TEST_CASE("a table is read with its header") {
  const Measurement m = read_measurement_csv(kTable, "t.csv");
  CHECK(m.operation == Operation::all_to_all);
  CHECK(m.ranks == 4);
  CHECK(m.nodes == 2);
  CHECK(m.gpus_per_node == 2);
  CHECK_FALSE(m.algorithm);
  CHECK(m.provenance.kind == Kind::published);
  CHECK(m.provenance.source == "somewhere");
  REQUIRE(m.rows.size() == 2);
  CHECK(m.rows[0].time.ps() == 52'940'000);
  // 2^20 B / 52.94 us = 19.807 GB/s; busbw is 3/4 of that.
  CHECK(algbw_GBps(m.rows[0]) == Approx(19.807).epsilon(1e-4));
  CHECK(busbw_GBps(m, m.rows[0]) == Approx(14.855).epsilon(1e-4));
}

TEST_CASE("a written table is read back unchanged") {
  Measurement m = read_measurement_csv(kTable, "t.csv");
  m.algorithm = "ring";
  m.protocol = "LL128";
  m.backend = Backend::nccl;
  m.streams = 8;
  m.staging = "memcpy";
  m.provenance.kind = Kind::measured;
  for (Row& row : m.rows) row.spread = Spread{row.time.scaled(0.5), row.time.scaled(2)};
  const std::string text = write_measurement_csv(m);
  const Measurement again = read_measurement_csv(text, "again.csv");
  CHECK(write_measurement_csv(again) == text);
  CHECK(again.backend == Backend::nccl);
  CHECK(again.streams == 8);
  CHECK(again.staging == "memcpy");
  CHECK(again.rows[1].time == m.rows[1].time);
  CHECK(again.rows[1].spread->high == m.rows[1].spread->high);
  CHECK(again.notes == m.notes);
}

TEST_CASE("a broken table is refused with file, line and reason") {
  CHECK(refusal(kTable, "# collective: alltoall\n", "") ==
        "t.csv: has no '# collective: ...' line: name it with --op");
  CHECK(refusal(kTable, "# ranks: 4\n", "") ==
        "t.csv: has no '# ranks: ...' line: give them with --ranks");
  CHECK(refusal(kTable, "ranks: 4", "ranks: four") ==
        "t.csv:2: ranks: 'four' is not a count (allowed: a whole number from 1)");
  CHECK_THAT(refusal(kTable, "# source", "# kind: guessed\n# source"),
             Catch::Contains("t.csv:7: kind: unknown kind 'guessed'"));
  CHECK(refusal(kTable, "52.94", "-1") == "t.csv:9: time_us: -1 is not above zero");
  CHECK(refusal(kTable, "52.94", "1e-9") == "t.csv:9: time_us: is below a picosecond");
  CHECK(refusal(kTable, "1048576", "nan") == "t.csv:9: size_bytes: 'nan' is not a finite number");
  CHECK(refusal(kTable, ",14.85", "") == "t.csv:9: has 3 fields where the header has 4");
  CHECK(refusal(kTable, "1048576,52.94,19.81,14.85\n2097152,72.12,29.08,21.81\n", "") ==
        "t.csv: has no rows");
  CHECK(refusal("# collective: broadcast\n# ranks: 2\nsize_bytes,time_us,min_us,max_us\n8,5,4,6\n",
                "8,5,4,6", "8,7,4,6") == "t.csv:4: time_us: is not between min_us and max_us");
}

TEST_CASE("runs merge into the median with the extremes of all") {
  std::vector<Measurement> runs(3, read_measurement_csv(kTable, "t.csv"));
  runs[1].rows[0].time = Duration::microseconds(60);
  runs[2].rows[0].time = Duration::microseconds(50);
  runs[2].rows[0].spread = Spread{Duration::microseconds(40), Duration::microseconds(99)};
  // The median of 52.94, 60 and 50 is 52.94; the extremes come from the spread of run 2.
  const Measurement merged = merge_runs(runs);
  CHECK(merged.rows[0].time.us() == Approx(52.94));
  CHECK(merged.rows[0].spread->low.us() == Approx(40));
  CHECK(merged.rows[0].spread->high.us() == Approx(99));
  CHECK(merged.rows[1].spread->low == merged.rows[1].time);

  runs[1].rows[0].size = Bytes(5);
  CHECK_THROWS_WITH(merge_runs(runs), "runs over different sizes cannot be merged");
  runs[1].ranks = 5;
  CHECK_THROWS_WITH(merge_runs(runs), "runs of different measurements cannot be merged");
}

TEST_CASE("the median of an even number of values is the mean of the middle two") {
  const auto us = [](double v) { return Duration::microseconds(v); };
  CHECK(median({us(4), us(1), us(3), us(10)}) == us(3.5));
  CHECK(median({us(9), us(1), us(2)}) == us(2));
}
