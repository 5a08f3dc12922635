#include "validate/measure/measure.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "validate/importers/importers.h"
#include "validate/measure/pattern.h"
#include "validate/measure/report.h"

using namespace lambcast;
using namespace lambcast::validate;

namespace {

MeasuredTable table_of_four(Operation operation) {
  MeasuredTable table;
  table.options.operation = operation;
  table.backend = "mpi";
  table.library = "Some MPI 1.0";
  table.timing = "each iteration after a barrier";
  for (const char* host : {"a", "a", "b", "b"}) table.places.push_back({host, -1, {}});
  for (const double bytes : {65536.0, 262144.0}) {
    MeasuredRow row;
    row.row.size = Bytes(bytes);
    row.row.time = Duration::microseconds(bytes / 1000);  // 1 GB/s
    row.row.spread = Spread{row.row.time.scaled(0.9), row.row.time.scaled(1.5)};
    row.iterations = 20;
    row.checked = true;
    table.rows.push_back(row);
  }
  return table;
}

std::string report(MeasuredTable table, ReportFormat format) {
  table.options.format = format;
  std::ostringstream out;
  write_report(table, out);
  return out.str();
}

std::string refusal(const std::vector<std::string>& flags) {
  try {
    parse_measure_flags(flags);
  } catch (const Error& error) {
    CHECK(error.code() == Exit::usage);
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("flags mean what they mean in nccl-tests") {
  const MeasureOptions o = parse_measure_flags(
      {"-b", "64K", "-e", "1M", "-f", "4", "-n", "7", "-w", "2", "-a", "3", "--op", "alltoall"});
  CHECK(o.min_bytes == 65536);
  CHECK(o.max_bytes == 1048576);
  CHECK(o.iterations == 7);
  CHECK(o.warmup == 2);
  CHECK(o.rank_time == RankTime::max);
  CHECK(sizes_to_run(o, 4) == std::vector<std::uint64_t>{65536, 262144, 1048576});
  CHECK(parse_measure_flags({}).rank_time == RankTime::mean);
}

TEST_CASE("sizes are whole blocks") {
  MeasureOptions o =
      parse_measure_flags({"-b", "1", "-e", "100", "-i", "33", "--op", "all_gather"});
  // 1, 34, 67, 100 down to multiples of 4 * 3 = 12: 0 (left out), 24, 60, 96.
  CHECK(sizes_to_run(o, 3) == std::vector<std::uint64_t>{24, 60, 96});
  o.operation = Operation::compressed_allreduce;  // multiples of 32 * 3 = 96
  CHECK(sizes_to_run(o, 3) == std::vector<std::uint64_t>{96});
  CHECK_THROWS_WITH(sizes_to_run(o, 4), "-e: no size holds a whole block of 128 bytes");
}

TEST_CASE("wrong flags are refused by name") {
  CHECK(refusal({"-b"}) == "-b: needs a value");
  CHECK_THAT(refusal({"-b", "12Q"}), Catch::StartsWith("-b: '12Q' is no size"));
  CHECK_THAT(refusal({"-b", "9999G"}), Catch::StartsWith("-b: '9999G' is no size"));
  CHECK(refusal({"-b", "2K", "-e", "1K"}) == "-e: is below -b");
  CHECK_THAT(refusal({"-n", "1.5"}), Catch::Contains("'1.5' is no whole number"));
  CHECK_THAT(refusal({"-f", "1"}), Catch::StartsWith("-f: '1' is no value for it"));
  CHECK_THAT(refusal({"-a", "4"}), Catch::StartsWith("-a: unknown value '4'"));
  CHECK_THAT(refusal({"--stagin", "none"}), Catch::Contains("did you mean '--staging'?"));
}

TEST_CASE("the pattern is exact: the sums of all ranks by hand") {
  const auto sums = pattern_sums(3);
  for (const std::uint64_t i : {0ULL, 1ULL, 250ULL, 123456789ULL}) {
    const std::uint32_t h = pattern_residue(i);
    CHECK(pattern_value(2, i) == (2 + h) % 251);
    CHECK(sums[h] ==
          static_cast<float>(pattern_value(0, i) + pattern_value(1, i) + pattern_value(2, i)));
  }
  // Neighbouring blocks must differ, or a block at the wrong place would pass.
  int equal = 0;
  for (std::uint64_t i = 0; i < 1024; ++i)
    equal += pattern_value(0, i) == pattern_value(0, i + 1024);
  CHECK(equal < 100);
}

TEST_CASE("text, JSON and CSV read back as the same measurement") {
  for (const Operation operation : {Operation::all_gather, Operation::compressed_allreduce}) {
    const MeasuredTable table = table_of_four(operation);
    const Measurement truth = to_measurement(table);
    CHECK(truth.nodes == 2);
    CHECK(truth.gpus_per_node == 2);
    for (const ReportFormat format :
         {ReportFormat::nccl_tests, ReportFormat::json, ReportFormat::csv}) {
      const auto all = import_measurements(report(table, format), "report");
      REQUIRE(all.size() == 1);
      CHECK(all[0].operation == operation);
      CHECK(all[0].ranks == 4);
      CHECK(all[0].nodes == 2);
      REQUIRE(all[0].rows.size() == 2);
      CHECK(all[0].rows[1].size == truth.rows[1].size);
      CHECK(all[0].rows[1].time.us() == Approx(262.144).epsilon(1e-4));
      const bool has_spread = format != ReportFormat::nccl_tests;
      CHECK(all[0].rows[1].spread.has_value() == has_spread);
    }
  }
}

TEST_CASE("wrong results show in every report and cannot be imported") {
  MeasuredTable table = table_of_four(Operation::all_reduce);
  table.rows[1].wrong = 5;
  const std::string text = report(table, ReportFormat::nccl_tests);
  CHECK_THAT(text, Catch::Contains("# Out of bounds values : 5 FAILED"));
  CHECK_THROWS_WITH(import_measurements(text, "r"), Catch::Contains("5 elements"));
  CHECK_THROWS_WITH(import_measurements(report(table, ReportFormat::json), "r"),
                    Catch::Contains("nwrong"));
}

TEST_CASE("the manifest lists allowed variables and no others") {
  setenv("NCCL_IB_HCA", "mlx5", 1);
  setenv("OMPI_MCA_btl_tcp_flags", "9", 1);
  setenv("NCCL_SECRET", "never", 1);
  setenv("LAMBCAST_PASSWORD", "never", 1);
  const std::string text = manifest_json(table_of_four(Operation::all_reduce));
  const auto json = nlohmann::json::parse(text);
  CHECK(json["environment"] ==
        nlohmann::json::array({"NCCL_IB_HCA=mlx5", "OMPI_MCA_btl_tcp_flags=9"}));
  CHECK(text.find("never") == std::string::npos);
  CHECK(json["library"] == "Some MPI 1.0");
  CHECK(json["ranks"].size() == 4);
}

TEST_CASE("NCCL without a GPU is one sentence and exit code 4") {
  std::ostringstream out;
  try {
    measure_nccl(parse_measure_flags({"-b", "1K", "-e", "1K"}), out);
    // A machine with a GPU measures: one row with a checked result.
    CHECK_THAT(out.str(), Catch::Contains("# Out of bounds values : 0 OK"));
  } catch (const Error& error) {
    CHECK(error.code() == Exit::missing);
    const std::string what = error.what();
    CHECK((what.find("no NVIDIA GPU") != what.npos || what.find("without CUDA") != what.npos));
    CHECK(out.str().empty());
  }
}
