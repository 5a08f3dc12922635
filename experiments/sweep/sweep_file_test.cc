#include "experiments/sweep/sweep_file.h"

#include <catch2/catch.hpp>

#include "experiments/advise/advice_list.h"
#include "experiments/scenario/scenario_case.h"
#include "experiments/sweep/sweep_plan.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;
using Values = std::vector<std::string>;

TEST_CASE("sweep_file: the file has the values of the flags, with any characters") {
  const WhatIf base{{"model", "bert-large"},
                    {"cluster", "a \"b\"\\c.toml"},
                    {"cluster.nic.bandwidth", "1 Gbit/s"},
                    {"freeze_step", "16.7%"},
                    {"steps", "007"}};
  const std::vector<Axis> axes{{"gpus", {"8", "16"}}, {"optimizer", {"lamb", "onebit_lamb"}}};
  const SweepPlan plan = plan_sweep(sweep_file(base, axes), "the flags", {});
  REQUIRE(plan.points.size() == 4);
  const WhatIf last = plan.points[3];
  for (const auto& [key, value] : base) CHECK(last.at(key) == value);
  CHECK(last.at("gpus") == "16");
  CHECK(last.at("optimizer") == "onebit_lamb");
  CHECK(plan.points[1].at("gpus") == "8");
  CHECK_THROWS_WITH(sweep_file({{"gpus", "8"}}, axes), Contains("--gpus: contradicts"));
}

TEST_CASE("scan: FROM..TO doubles and includes its end") {
  CHECK(parse_scan("gpus=8..64").second == Values{"8", "16", "32", "64"});
  CHECK(parse_scan("gpus=8..60").second == Values{"8", "16", "32", "60"});
  CHECK(parse_scan("cluster.nic.bandwidth=1..4Gbit/s").second ==
        Values{"1Gbit/s", "2Gbit/s", "4Gbit/s"});
  CHECK(is_scan("8..64"));
  CHECK_FALSE(is_scan("../mine.toml"));
  CHECK_FALSE(is_scan("a..b"));
  CHECK_THROWS_WITH(parse_scan("gpus=64..8"), Contains("does not lead from 64 to 8"));
  CHECK_THROWS_WITH(parse_scan("gpus=0..8"), Contains("does not lead"));
}

TEST_CASE("advise: a list states value by value whether compression pays") {
  Catalog catalog;
  WhatIf what_if = with({{"kernels", "deepspeed"}});
  what_if.erase("global_batch");
  const AdviceList list =
      advise_all(what_if, {{"global_batch", {"4096", "65536", "1000"}}}, catalog);
  REQUIRE(list.points.size() == 3);
  REQUIRE(list.points[0].advice.has_value());
  const Answer &small = list.points[0].advice->answer, &large = list.points[1].advice->answer;
  CHECK(small.verdict() == Verdict::yes);
  // More micro batches per exchange leave less to gain.
  CHECK(small.speedup().value > large.speedup().value);
  CHECK_FALSE(list.points[2].advice.has_value());
  CHECK_THAT(advice_list_text(list),
             Contains("Does onebit_lamb pay, by global_batch?") && Contains("cannot run at 1000"));
  CHECK_THAT(advice_list_csv(list), Contains("1000,,,") && Contains("infeasible: "));
}

}  // namespace
}  // namespace lambcast
