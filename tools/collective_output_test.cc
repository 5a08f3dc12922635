// Output of `lambcast collective`, read back by its consumers: a JSON parser, a CSV parser and the
// importer of nccl-tests logs.
#include <fmt/format.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "sim/base/csv.h"
#include "sim/base/json.h"
#include "sim/collectives/schedule.h"
#include "validate/importers/importers.h"

namespace lambcast {
namespace {

std::string output_of(const std::string& arguments) {
  const std::string command = fmt::format("{} collective {}", LAMBCAST_PROGRAM, arguments);
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  std::array<char, 4096> chunk;
  while (const std::size_t got = fread(chunk.data(), 1, chunk.size(), pipe))
    text.append(chunk.data(), got);
  INFO(command);
  REQUIRE(pclose(pipe) == 0);
  return text;
}

// Returns bus bandwidth divided by algorithm bandwidth for 16 ranks, as nccl-tests defines it
// (doc/PERFORMANCE.md there).
double factor(const std::string& op) {
  if (op == "all_reduce") return 2 * 15. / 16;
  return op == "broadcast" || op == "send_recv" || op == "reduce" ? 1 : 15. / 16;
}

TEST_CASE(
    "collective: JSON has every promised key, and its bandwidths are defined as in nccl-tests") {
  for (const std::string& op : op_names()) {
    const Json json = Json::parse(
        output_of(fmt::format("--cluster paper-eth40-v100 --gpus 16 --op {} -b 1K -e 64M -f 16 "
                              "--format json",
                              op)));
    CHECK(json.at("schema_version") == 1);
    CHECK(json.at("op") == op);
    CHECK(json.at("cluster") == "paper-eth40-v100");
    CHECK(json.at("gpus") == 16);
    CHECK(json.at("gpus_per_node") == 4);
    REQUIRE(json.at("results").size() == 5);
    double size = 1024, last_us = 0;
    for (const Json& row : json.at("results")) {
      for (const char* key : {"algorithm", "protocol"})
        CHECK_FALSE(row.at(key).get<std::string>().empty());
      for (const char* key : {"low_us", "high_us"}) CHECK(row.contains(key));
      CHECK(row.at("calibrated").is_boolean());
      CHECK(row.at("size_bytes") == size);
      const double us = row.at("time_us").get<double>();
      CHECK(us > last_us);
      CHECK(row.at("algbw_GBps").get<double>() == Approx(size / us * 1e-3));
      CHECK(row.at("busbw_GBps").get<double>() == Approx(size / us * 1e-3 * factor(op)));
      last_us = us;
      size *= 16;
    }
  }
}

TEST_CASE("collective: CSV and JSON agree") {
  const std::string what = "--cluster hgx-h100-ndr --gpus 32 -b 1M -e 1G -f 4 --format ";
  const csv::Table table = csv::parse(output_of(what + "csv"), "stdout");
  CHECK(table.header == std::vector<std::string>{"size_bytes", "time_us", "algbw_GBps",
                                                 "busbw_GBps", "algorithm", "protocol", "low_us",
                                                 "high_us", "calibrated", "flow_model_time_us"});
  const Json json = Json::parse(output_of(what + "json"));
  REQUIRE(table.rows.size() == json.at("results").size());
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const Json& row = json.at("results")[i];
    for (const char* key :
         {"size_bytes", "time_us", "algbw_GBps", "busbw_GBps", "low_us", "high_us"})
      CHECK(table.number(i, key) == row.at(key).get<double>());
    for (const char* key : {"algorithm", "protocol"})
      CHECK(table.text(i, key) == row.at(key).get<std::string>());
    CHECK(table.text(i, "calibrated") == row.at("calibrated").dump());
  }
}

TEST_CASE("collective: the table can be read as a log of nccl-tests") {
  for (const std::string& op : op_names()) {
    INFO(op);
    const std::string what =
        fmt::format("--cluster paper-eth40-v100 --gpus 16 --op {} -b 64K -e 64M -f 4", op);
    const std::string text = output_of(what);
    const Json json = Json::parse(output_of(what + " --format json"));
    validate::ImportHints hints;
    hints.operation = validate::parse_operation(op, {});
    hints.ranks = 16;
    const auto tables = validate::import_nccl_tests_text(text, "stdout", hints);
    REQUIRE(tables.size() == 1);
    REQUIRE(tables[0].rows.size() == json.at("results").size());
    for (std::size_t i = 0; i < tables[0].rows.size(); ++i) {
      const Json& row = json.at("results")[i];
      CHECK(tables[0].rows[i].size.value() == row.at("size_bytes").get<double>());
      // The table has two decimals.
      CHECK(tables[0].rows[i].time.us() == Approx(row.at("time_us").get<double>()).margin(0.0051));
    }
  }
}

TEST_CASE("collective: symmetry and the network model change nothing on an ideal switch") {
  for (const char* op : {"all_reduce", "all_gather", "reduce_scatter"}) {
    const std::string what = fmt::format(
        "--cluster paper-eth40-v100 --gpus 8 --gpus-per-node 1 --op {} --algorithm "
        "ring -b 1M -e 64M -f 8 --format json ",
        op);
    const Json plain = Json::parse(output_of(what)).at("results");
    for (const char* way : {"--symmetry off", "--network flow", "--symmetry off --network flow"}) {
      const Json other = Json::parse(output_of(what + way)).at("results");
      for (std::size_t i = 0; i < plain.size(); ++i)
        CHECK(other[i].at("time_us").get<double>() ==
              Approx(plain[i].at("time_us").get<double>()).epsilon(1e-6));
    }
  }
}

}  // namespace
}  // namespace lambcast
