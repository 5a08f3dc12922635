#include "experiments/output/collective_output.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "sim/base/csv.h"
#include "sim/base/json.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;
// Returns a forecast of 1 MB in 100 us; the flow model gives half of that.
CollectiveAnswer made_up() {
  CollectiveRow row{1e6, Duration::microseconds(100), "ring", "Simple"};
  row.interval = {Duration::microseconds(80), Duration::microseconds(150), false, Ground::none};
  row.flow_time = Duration::microseconds(50);
  return {"all_reduce", {16, 8}, Backend::nccl, 1.875, {row}};
}

Cluster made_up_cluster() {
  Cluster cluster = load_cluster("commodity-10gbe", {});
  cluster.name = "here";
  cluster.calibration.reset();
  return cluster;
}

TEST_CASE("collective output: a log of nccl-tests, with its sources in comments") {
  const std::string text = collective_text(made_up(), made_up_cluster());
  CHECK_THAT(text, Contains("# lambcast forecast of all_reduce on here, 16 ranks\n") &&
                       Contains("# ring/Simple, not calibrated") &&
                       Contains("0.80 to 1.50 times the time") &&
                       Contains("--network flow, where they take up what others leave, says 0.50"));
  CHECK_THAT(text, Contains(" 1000000        250000     float     sum     -1      100.00     10.00"
                            "     18.75     N/A\n"));
}

TEST_CASE("collective output: a table of 80 columns has the times with their intervals") {
  CollectiveAnswer answer = made_up();
  answer.rows.front().size = 16e9;
  answer.rows.front().time = Duration::microseconds(12345678);
  answer.rows.front().interval.high = Duration::microseconds(23456789);
  const std::string text = collective_table(answer, made_up_cluster());
  CHECK_THAT(text, Contains("# lambcast forecast of all_reduce on here, 16 ranks\n") &&
                       Contains("# not calibrated") && Contains("--network flow") &&
                       Contains(" 80.0 to 23456789 ") && Contains("  ring/Simple\n"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with("# ")) CHECK(line.size() <= 80);
}

TEST_CASE("collective output: a network whose switches cannot reduce is reported") {
  Cluster cluster = made_up_cluster();
  cluster.nccl.sharp = true;
  CollectiveAnswer answer = made_up();
  CHECK_THAT(collective_text(answer, cluster), !Contains("nccl.sharp"));
  answer.group = {144, 72};
  for (const std::string& text :
       {collective_text(answer, cluster), collective_table(answer, cluster)})
    CHECK_THAT(text, Contains("# nccl.sharp has no effect: CollNet is for at most 8 GPUs a node"));
  // JSON contains the same findings as the comments of the text.
  cluster.exceeded_name_plate = Bandwidth(1e9);
  const Json found = Json::parse(collective_json(answer, cluster)).at("findings");
  REQUIRE(found.size() == 2);
  CHECK(found.at(0).at("code") == "nic-above-nominal");
  CHECK(found.at(1).at("code") == "flag-no-effect");
}

// 1 MB takes 100 us by the ring and 60 us by the tree. NCCL rates both alike.
TEST_CASE("collective output: a switching point of NCCL's rule is a finding") {
  CollectiveAnswer answer = made_up();
  const auto findings = [&] {
    return Json::parse(collective_json(answer, made_up_cluster())).at("findings");
  };
  CHECK(findings().empty());
  CHECK_THAT(collective_text(answer, made_up_cluster()), !Contains("twice the size"));
  answer.rows.front().tip.rival = {"tree", "LL", Duration::microseconds(105)};
  CHECK(findings().empty());  // the difference is too small for a finding
  answer.rows.front().tip.rival = {"tree", "LL", Duration::microseconds(60)};
  REQUIRE(findings().size() == 1);
  CHECK(findings().at(0).at("code") == "algorithm-tips");
  CHECK(findings().at(0).at("severity") == "note");
  const std::string said =
      "all_reduce of 1 MB runs by ring/Simple in 100 us, and by tree/LL, which NCCL's own "
      "constants rate alike within 25 %, in 60 us";
  CHECK(findings().at(0).at("message") == said);
  for (const std::string& text :
       {collective_text(answer, made_up_cluster()), collective_table(answer, made_up_cluster())})
    CHECK_THAT(text, Contains("\n# " + said + "\n"));
  answer.rows.front().tip = {std::nullopt, Rival{"tree", "LL", Duration::microseconds(70)}};
  CHECK(findings().at(0).at("message") ==
        "all_reduce of 1 MB runs by ring/Simple in 100 us, and one of twice the size runs by "
        "tree/LL in 70 us");
}

TEST_CASE("collective output: JSON and CSV hold the same figures") {
  const Json json = Json::parse(collective_json(made_up(), made_up_cluster()));
  const Json& row = json.at("results").at(0);
  CHECK(row.at("busbw_GBps").get<double>() == Approx(18.75));
  CHECK(row.at("flow_model_time_us").get<double>() == Approx(50));
  CHECK_FALSE(json.contains("stride"));
  const csv::Table table = csv::parse(collective_csv(made_up()), "test");
  REQUIRE(table.rows.size() == 1);
  for (const char* key : {"size_bytes", "time_us", "algbw_GBps", "busbw_GBps", "low_us", "high_us",
                          "flow_model_time_us"})
    CHECK(table.number(0, key) == row.at(key).get<double>());
  CHECK(table.text(0, "calibrated") == "false");
}

TEST_CASE("collective output: a group that is not on whole nodes states its placement") {
  CollectiveAnswer answer = made_up();
  answer.group.stride = 8;
  answer.group.siblings = 8;
  CHECK_THAT(collective_text(answer, made_up_cluster()),
             Contains("16 ranks, stride 8, node stride 1, 8 groups at once"));
  CHECK(Json::parse(collective_json(answer, made_up_cluster())).at("siblings") == 8);
}

TEST_CASE("collective output: jobs show how much longer they take together") {
  CollectiveJob job;
  job.name = "a, \"b\"";
  job.op = Op::all_gather;
  job.size = Bytes(1e6);
  job.group = {16, 8};
  const std::vector<CollectiveJob> jobs{job};
  const std::vector<JobForecast> forecasts{
      {"ring",
       "Simple",
       Duration::microseconds(10),
       Duration::microseconds(25),
       {Duration::microseconds(20), Duration::microseconds(30), true, Ground::calibrated}}};
  CHECK_THAT(
      jobs_text(jobs, forecasts, made_up_cluster()),
      Contains("1 jobs at once on here") && Contains("20.0 to 30.0     2.50  ring/Simple\n"));
  const csv::Table table = csv::parse(jobs_csv(jobs, forecasts), "test");
  CHECK(table.text(0, "job") == "a, \"b\"");
  CHECK(table.number(0, "together_us") == 25);
  CHECK(table.number(0, "low_us") == 20);
  CHECK(table.text(0, "calibrated") == "true");
  const Json json = Json::parse(jobs_json(jobs, forecasts, made_up_cluster()));
  CHECK(json.at("jobs").at(0).at("alone_us").get<double>() == 10);
  CHECK(json.at("jobs").at(0).at("high_us").get<double>() == 30);
}

}  // namespace
}  // namespace lambcast
