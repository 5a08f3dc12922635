#include "validate/measure/report.h"

#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/base/error.h"
#include "validate/importers/importers.h"

using namespace lambcast;
using namespace lambcast::validate;

namespace {

MeasuredTable table_of_four(Operation operation) {
  MeasuredTable table;
  table.options.operation = operation;
  table.backend = Backend::mpi_host;
  table.library = "Some MPI 1.0";
  table.timing = "each iteration after a barrier";
  for (const char* host : {"a", "a", "b", "b"}) table.places.push_back({host, -1, {}});
  for (const double bytes : {65536.0, 262144.0}) {
    MeasuredHalf half;
    half.row.size = Bytes(bytes);
    half.row.time = Duration::microseconds(bytes / 1000);  // 1 GB/s
    half.row.spread = Spread{half.row.time.scaled(0.9), half.row.time.scaled(1.5)};
    half.iterations = 20;
    half.checked = true;
    table.rows.push_back({half, {}});
    if (has_in_place(operation, table.backend)) table.rows.back().in_place = half;
  }
  return table;
}

// Returns the output of a run that measures the rows of `table`; stopped before its end if not
// `finished`.
std::string report(MeasuredTable table, ReportFormat format, bool finished = true) {
  table.options.format = format;
  const std::vector<MeasuredRow> rows = std::move(table.rows);
  table.rows.clear();
  std::ostringstream out;
  Report report(table, &out, rows.size());
  for (const MeasuredRow& row : rows) report.add(row);
  if (finished) report.finish();
  return out.str();
}

}  // namespace

TEST_CASE("text, JSON and CSV are read back as the same measurement") {
  for (const Operation operation : {Operation::all_gather, Operation::compressed_allreduce}) {
    MeasuredTable table = table_of_four(operation);
    if (operation == Operation::compressed_allreduce) table.options.staging = Staging::memcpy;
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
      CHECK(all[0].backend == Backend::mpi_host);
      CHECK(all[0].staging == truth.staging);
      CHECK(all[0].staging.has_value() == (operation == Operation::compressed_allreduce));
      REQUIRE(all[0].rows.size() == 2);
      CHECK(all[0].rows[1].size == truth.rows[1].size);
      CHECK(all[0].rows[1].time.us() == Approx(262.144).epsilon(1e-4));
      const bool has_spread = format != ReportFormat::nccl_tests;
      CHECK(all[0].rows[1].spread.has_value() == has_spread);
    }
  }
}

TEST_CASE("text and JSON have both halves of nccl-tests, or mark the second as missing") {
  MeasuredTable table = table_of_four(Operation::all_gather);
  for (MeasuredRow& row : table.rows) {
    row.in_place = row.out_of_place;
    row.in_place->row.time = row.out_of_place.row.time.scaled(2);
    row.in_place->row.spread.reset();
  }
  ImportHints hints;
  hints.in_place = true;
  for (const ReportFormat format :
       {ReportFormat::nccl_tests, ReportFormat::json, ReportFormat::csv}) {
    table.has_spread = format != ReportFormat::csv;
    const auto all = import_measurements(report(table, format), "report", hints);
    REQUIRE(all.size() == 1);
    REQUIRE(all[0].rows.size() == 2);
    CHECK(all[0].rows[1].time.us() == Approx(2 * 262.144).epsilon(1e-4));
  }
  // busbw is 3/4 of 1 GB/s out of place, and half of that in place.
  const std::string text = report(table, ReportFormat::nccl_tests);
  CHECK_THAT(text, Catch::Contains("# Avg bus bandwidth    : 0.5625\n"));
  const auto json = nlohmann::json::parse(report(table, ReportFormat::json));
  CHECK(json["average_bus_bandwidth"]["bandwidth"].get<double>() == Approx(0.5625));

  const MeasuredTable one_half = table_of_four(Operation::broadcast);
  CHECK_THAT(report(one_half, ReportFormat::nccl_tests),
             Catch::Contains("       N/A     N/A     N/A     N/A\n") &&
                 Catch::Contains("# Avg bus bandwidth    : 1\n"));
  CHECK(nlohmann::json::parse(report(one_half, ReportFormat::json))["results"][0]["in_place"]
            .is_null());
  for (MeasuredRow& row : table.rows) row.in_place->row.spread = Spread{{}, Duration::seconds(1)};
  table.has_spread = true;
  CHECK_THROWS_WITH(import_measurements(report(table, ReportFormat::csv), "r", hints),
                    Catch::Contains("in_place_min_us"));
  for (MeasuredRow& row : table.rows)
    row.in_place->row.spread = Spread{Duration::microseconds(1), Duration::seconds(1)};
  CHECK(import_measurements(report(table, ReportFormat::csv), "r", hints)[0].rows[1].spread->high ==
        Duration::seconds(1));
  table.rows[1].in_place->wrong = 3;
  CHECK_THAT(report(table, ReportFormat::nccl_tests),
             Catch::Contains("# Out of bounds values : 3 FAILED"));
}

TEST_CASE("wrong results show in every report and cannot be imported") {
  MeasuredTable table = table_of_four(Operation::all_reduce);
  table.rows[1].out_of_place.wrong = 5;
  const std::string text = report(table, ReportFormat::nccl_tests);
  CHECK_THAT(text, Catch::Contains("# Out of bounds values : 5 FAILED"));
  CHECK_THROWS_WITH(import_measurements(text, "r"), Catch::Contains("5 elements"));
  CHECK_THROWS_WITH(import_measurements(report(table, ReportFormat::json), "r"),
                    Catch::Contains("nwrong"));
  CHECK_THROWS_WITH(import_measurements(report(table, ReportFormat::csv), "r"),
                    Catch::Contains("wrong: 5 elements of the result are wrong"));
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

TEST_CASE("names of hosts and variables may hold any bytes") {
  MeasuredTable table = table_of_four(Operation::all_reduce);
  table.places[0].host = table.places[1].host = "\x1b]0;title\a\xff\nb";
  table.places[1].device_name = "GPU\x1b[2J";
  setenv("NCCL_IB_HCA", "mlx5\xff\x1b[31m", 1);
  const auto manifest = nlohmann::json::parse(manifest_json(table));
  CHECK(manifest["ranks"][1]["host"] == " ]0;title \uFFFD b");
  CHECK(manifest["environment"][0] == "NCCL_IB_HCA=mlx5\uFFFD\x1b[31m");
  unsetenv("NCCL_IB_HCA");
  for (const ReportFormat format : {ReportFormat::nccl_tests, ReportFormat::json}) {
    const std::string text = report(table, format);
    CHECK(text.find_first_of("\x1b\a\xff") == std::string::npos);
    CHECK(import_measurements(text, "report").front().ranks == 4);
  }
}

TEST_CASE("a run that is stopped leaves the rows that were finished") {
  const MeasuredTable table = table_of_four(Operation::all_reduce);
  for (const ReportFormat format : {ReportFormat::nccl_tests, ReportFormat::csv}) {
    const auto all = import_measurements(report(table, format, false), "stopped");
    REQUIRE(all.size() == 1);
    CHECK(all[0].rows.size() == 2);
    CHECK(all[0].ranks == 4);
  }
  const std::string cut = report(table, ReportFormat::json, false);
  CHECK(import_measurements(cut + "]}", "mended").front().rows.size() == 2);
}

TEST_CASE("the exit code of a report is that of its results") {
  MeasuredTable table = table_of_four(Operation::all_reduce);
  const std::vector<MeasuredRow> rows = std::move(table.rows);
  table.rows.clear();
  Report silent(table, nullptr, 2);  // without output, as on every rank except 0
  silent.add(rows[0]);
  CHECK(silent.finish() == 0);
  MeasuredRow bad = rows[1];
  bad.out_of_place.wrong = 1;
  silent.add(bad);
  CHECK(silent.finish() == 1);
}

TEST_CASE("output that cannot be written is an error") {
  MeasuredTable table = table_of_four(Operation::all_reduce);
  std::ostringstream out;
  out.setstate(std::ios::badbit);
  CHECK_THROWS_WITH(Report(table, &out, 1), "the table cannot be written to stdout");
  table.options.manifest = "/dev/null/manifest.json";
  std::ostringstream fine;
  CHECK_THROWS_WITH(Report(table, &fine, 1),
                    "/dev/null/manifest.json: --manifest: cannot be opened for writing");
  table.options.manifest = "/dev/full";
  CHECK_THROWS_WITH(Report(table, &fine, 1), "/dev/full: --manifest: was written only in part");
  CHECK(fine.str().empty());
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Files are limited to 100 bytes, less than the manifest.
TEST_CASE("a manifest that cannot be written whole leaves the previous one") {
  std::string name = std::filesystem::temp_directory_path() / "manifest-XXXXXX";
  REQUIRE(mkdtemp(name.data()) != nullptr);
  const std::filesystem::path folder = name;
  MeasuredTable table = table_of_four(Operation::all_reduce);
  table.options.manifest = folder / "manifest.json";
  std::ofstream(table.options.manifest) << "of an earlier run";
  std::ostringstream out;
  rlimit whole{};
  REQUIRE(getrlimit(RLIMIT_FSIZE, &whole) == 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit little{100, whole.rlim_max};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &little) == 0);
  std::string said;
  try {
    Report(table, &out, 1);
  } catch (const Error& error) {
    said = error.what();
    CHECK(error.code() == Exit::failure);
  }
  REQUIRE(setrlimit(RLIMIT_FSIZE, &whole) == 0);
  std::signal(SIGXFSZ, handler);
  CHECK_THAT(said, Catch::Contains("manifest.json") && Catch::Contains("cannot be written"));
  CHECK(out.str().empty());
  CHECK(text_of(table.options.manifest) == "of an earlier run");
  CHECK(std::distance(std::filesystem::directory_iterator(folder), {}) == 1);
  Report(table, &out, 1);
  CHECK(nlohmann::json::parse(text_of(table.options.manifest))["tool"] == "lambcast measure");
  CHECK(std::distance(std::filesystem::directory_iterator(folder), {}) == 1);
  std::filesystem::remove_all(folder);
}

TEST_CASE("every report and the manifest have the notes on a shared GPU") {
  MeasuredTable table = table_of_four(Operation::all_reduce);
  table.sharing = words_of(GpuSharing::slices);
  for (const ReportFormat format :
       {ReportFormat::nccl_tests, ReportFormat::json, ReportFormat::csv}) {
    const std::string text = report(table, format);
    CHECK_THAT(text, Catch::Contains(table.sharing.how));
    CHECK_THAT(text, Catch::Contains(table.sharing.fit_for));
    CHECK_THAT(text, Catch::Contains(table.sharing.unfit_for));
    CHECK(import_measurements(text, "report").size() == 1);
  }
  const auto json = nlohmann::json::parse(manifest_json(table));
  CHECK(json["sharing"]["not_fit_for"] == table.sharing.unfit_for);
  CHECK(!nlohmann::json::parse(manifest_json(table_of_four(Operation::all_reduce)))
             .contains("sharing"));
}
