#include "experiments/compare/solve.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "experiments/advise/advice.h"
#include "experiments/compare/solve_output.h"
#include "experiments/scenario/scenario_case.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

WhatIf solve_asked() {
  return {{"model", "bert-large"},  {"cluster", "commodity-10gbe"},
          {"gpus", "32"},           {"optimizer", "onebit_lamb"},
          {"global_batch", "4096"}, {"micro_batch", "16"},
          {"steps", "5993"},        {"freeze_step", "1000"}};
}

Solution solved(const SolveQuestion& of) {
  Catalog catalog;
  return solve(of, catalog);
}

double forecast_at(WhatIf what_if, const std::string& key, const std::string& value,
                   double RunForecast::*member) {
  Catalog catalog;
  CollectiveCosts costs;
  what_if.insert_or_assign(key, value);
  return forecast(resolve(what_if, catalog).training, costs).run.*member;
}

TEST_CASE(
    "solve: a stated name plate limits no bandwidth, and a target out of reach names the "
    "limit") {
  WhatIf asked = solve_asked();
  asked.erase("freeze_step");
  asked["optimizer"] = "lamb";
  asked["cluster"] = "dgx2h-v100";
  asked["cluster.nic.count"] = "1";
  asked["cluster.nic.nominal"] = "100 Gbit/s";
  asked["cluster.nic.bandwidth"] = "92 Gbit/s";
  const Solution never = solved({asked, "cluster.nic.bandwidth", "run_time", "1s", {}, {}});
  CHECK(never.kind() == Solution::Kind::never);
  CHECK(never.cannot_run == 0);
  CHECK_THAT(solution_table(never), Contains("is not reached anywhere") &&
                                        Contains("The limit: ") && Contains("node.gpu_nic"));
}

TEST_CASE("solve: shares of a step and costs are found with their intervals and units") {
  WhatIf plain = solve_asked();
  plain.erase("freeze_step");
  plain["optimizer"] = "lamb";
  const Solution efficiency = solved({plain, "grad_accum", "efficiency", "50%", {}, {}});
  for (const SolvePoint& point : efficiency.points) {
    REQUIRE(point.metric.low.has_value());
    CHECK(*point.metric.low < point.metric.value);
    CHECK(*point.metric.high > point.metric.value);
    CHECK(*point.metric.high <= 1);
  }
  CHECK_THAT(solution_table(efficiency), Contains("By the forecast's interval it may be from "));
  // Without a network, an error of the passes changes work and step time alike, so the lost share
  // is zero without uncertainty.
  Catalog catalog;
  CollectiveCosts costs;
  WhatIf alone = plain;
  alone["gpus"] = "1";
  const Scenario scenario = resolve(alone, catalog);
  const Forecast of = forecast(scenario.training, costs);
  const MetricValue value = *find_metric("efficiency", {}).of(scenario.training, of);
  CHECK(of.run.time_high_s > 1.2 * of.run.time_low_s);
  CHECK(*value.low == Approx(1).epsilon(1e-9));
  CHECK(*value.high == Approx(1).epsilon(1e-9));

  plain["cluster.usd_per_gpu_hour"] = "2";
  for (const char* target : {"40", "40USD", "40 USD"})
    CHECK(solved({plain, "steps", "cost", target, {}, {}}).target == 40);
}

TEST_CASE("solve: a freeze_step as the key requires the length of the run") {
  WhatIf asked = solve_asked();
  for (const char* key : {"steps", "freeze_step"}) asked.erase(key);
  CHECK_THROWS_WITH(solved({asked, "freeze_step", "run_time", "75 min", {}, {}}),
                    Contains("--steps: is missing"));
}

TEST_CASE("solve: the latest freeze_step within a deadline is the last whole one") {
  const double target =
      forecast_at(solve_asked(), "freeze_step", "2000", &RunForecast::time_s) + 1e-3;
  const Solution solution =
      solved({solve_asked(), "freeze_step", "run_time", fmt::format("{} s", target), {}, {}});
  REQUIRE(solution.kind() == Solution::Kind::solved);
  const SolvePoint& before = solution.points[solution.passes.front() - 1];
  const SolvePoint& after = solution.points[solution.passes.front()];
  CHECK(before.text == "2000");
  CHECK(after.text == "2001");
  CHECK(before.meets);
  CHECK_FALSE(after.meets);
  CHECK(before.metric.value <= target);
  CHECK(after.metric.value > target);
  // The run with 2000 is one millisecond below the target, and has the same printed digits.
  CHECK_THAT(solution_table(solution), Contains("up to freeze_step 2000 (just under ") &&
                                           Contains("more than") && Contains("from 2001 on ("));
}

TEST_CASE("solve: a key of the device is the number that --set sets") {
  const double target =
      forecast_at(solve_asked(), "device.copy_bandwidth", "400GB/s", &RunForecast::time_s);
  const Solution solution = solved(
      {solve_asked(), "device.copy_bandwidth", "run_time", fmt::format("{} s", target), {}, {}});
  REQUIRE(solution.kind() == Solution::Kind::solved);
  CHECK(solution.points[solution.passes.front()].x == Approx(400e9).epsilon(0.01));
}

TEST_CASE("solve: the bandwidth at which a speed-up is 1 is the break-even of advise") {
  WhatIf what_if = solve_asked();
  what_if["kernels"] = "deepspeed";
  what_if["backend"] = "nccl";
  Catalog catalog;
  const Advice advice = advise(what_if, catalog);
  const auto nccl = std::ranges::find(advice.answer.backends, "nccl", &BackendAdvice::backend);
  REQUIRE(nccl != advice.answer.backends.end());
  REQUIRE(advice.answer.break_even.has_value());
  const BreakEven& even = *advice.answer.break_even;
  const Solution solution =
      solve({what_if, "cluster.nic.bandwidth", "speedup", "1", {}, {}}, catalog);
  if (solution.kind() == Solution::Kind::solved) {
    const double bandwidth = solution.points[solution.passes.front()].x;
    CHECK(solution.points[solution.passes.front()].x <
          1.0011 * solution.points[solution.passes.front() - 1].x);
    if (advice.answer.backends.front().backend == "nccl" && even.at)
      CHECK(bandwidth == Approx(even.at->value()).epsilon(0.01));
    REQUIRE(solution.within.has_value());
  } else {
    CHECK(even.pays_at_any_bandwidth);
  }
}

TEST_CASE("solve: GPUs that cannot run are left out and counted") {
  WhatIf what_if = solve_asked();
  what_if.erase("gpus");
  what_if["optimizer"] = "lamb";
  what_if["global_batch"] = "65536";
  const Solution solution = solved({what_if, "gpus", "efficiency", "50%", "8", "1024"});
  CHECK(solution.cannot_run > 0);
  for (const SolvePoint& point : solution.points)
    CHECK(65536 % (static_cast<int>(point.x) * 16) == 0);
  REQUIRE(solution.kind() == Solution::Kind::solved);
  const SolvePoint& before = solution.points[solution.passes.front() - 1];
  const SolvePoint& after = solution.points[solution.passes.front()];
  // GPU counts must divide the batch of 65,536, a power of two, so they are powers of two.
  CHECK(after.x == 2 * before.x);
  CHECK(before.metric.value >= 0.5);
  CHECK(after.metric.value < 0.5);
}

TEST_CASE(
    "solve: turning points of a curve are reported, whether or not it passes the target "
    "there") {
  WhatIf what_if = solve_asked();
  for (const char* key : {"gpus", "freeze_step", "global_batch"}) what_if.erase(key);
  what_if["optimizer"] = "lamb";
  what_if["cluster"] = "commodity-100gbe";
  what_if["grad_accum"] = "1";
  // The all-reduce begins as a tree and continues as a ring, which is slower here.
  const Solution solution = solved({what_if, "gpus", "efficiency", "1%", "8", "1024"});
  REQUIRE_FALSE(solution.turns.empty());
  for (const std::size_t turn : solution.turns) {
    REQUIRE(turn > 0);
    REQUIRE(turn + 1 < solution.points.size());
  }
  CHECK_THAT(solution_table(solution), Contains("is not monotone: it turns at gpus "));
  const auto json = nlohmann::json::parse(solution_json(solution));
  CHECK(json["turns"].size() == solution.turns.size());
  const Solution straight = solved({solve_asked(), "freeze_step", "run_time", "1 h", {}, {}});
  CHECK(straight.turns.empty());
  CHECK_THAT(solution_table(straight), !Contains("monotone"));
}

TEST_CASE("solve: numbers of the device and of a description can be the unknown") {
  const Solution device =
      solved({solve_asked(), "device.copy_bandwidth", "run_time", "1000 h", "100 GB/s", "2 TB/s"});
  CHECK(device.kind() == Solution::Kind::always);
  CHECK(device.points.front().x == Approx(1e11));
  const Solution price =
      solved({solve_asked(), "cluster.usd_per_gpu_hour", "cost", "1000", "0.5", "100"});
  REQUIRE(price.kind() == Solution::Kind::solved);
  const SolvePoint& at = price.points[price.passes.front() - 1];
  CHECK(at.metric.value == Approx(1000).epsilon(0.002));
}

TEST_CASE("solve: a key without effect is reported") {
  const WhatIf one_node = with({{"gpus", "4"}, {"optimizer", "lamb"}}, without({"freeze_step"}));
  const auto first_line = [&](const char* target) {
    const std::string table =
        solution_table(solved({one_node, "cluster.nic.bandwidth", "run_time", target, {}, {}}));
    return table.substr(0, table.find('\n'));
  };
  CHECK_THAT(first_line("2000 h"), Contains("cluster.nic.bandwidth moves nothing here: run_time "
                                            "is ") &&
                                       Contains(", at most "));
  CHECK_THAT(first_line("1 s"), Contains("moves nothing here") && Contains(", more than "));
}

TEST_CASE("solve: a target out of reach is reported in one line, and a text as target is refused") {
  const Solution never = solved({solve_asked(), "grad_accum", "speedup", "10", {}, "64"});
  CHECK(never.kind() == Solution::Kind::never);
  const std::string table = solution_table(never);
  CHECK_THAT(
      table.substr(0, table.find('\n')),
      Contains("is not reached anywhere from grad_accum 1") && !Contains("leaves that open"));
  double best = 0;
  for (const SolvePoint& point : never.points) best = std::max(best, point.metric.value);
  const Solution beside =
      solved({solve_asked(), "grad_accum", "speedup", fmt::format("{}", 1.01 * best), {}, "64"});
  CHECK(beside.kind() == Solution::Kind::never);
  CHECK_THAT(solution_table(beside), Contains("The forecast's interval leaves that open at "));
  const auto refused = [](const SolveQuestion& of) {
    Catalog catalog;
    try {
      solve(of, catalog);
    } catch (const Error& error) {
      CHECK(error.code() == Exit::usage);
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(refused({solve_asked(), "gpu", "speedup", "1", {}, {}}),
             Contains("did you mean 'gpus'"));
  CHECK_THAT(refused({solve_asked(), "gpus", "speed-up", "1", {}, {}}),
             Contains("did you mean 'speedup'"));
  CHECK_THAT(refused({solve_asked(), "optimizer", "speedup", "1", {}, {}}),
             Contains("is not a number"));
  CHECK_THAT(refused({solve_asked(), "gpus", "run_time", "48", {}, {}}), Contains("no unit"));
  CHECK_THAT(refused({solve_asked(), "gpus", "speedup", "1", "64", "8"}),
             Contains("64 is not below 8"));
  CHECK_THAT(refused({solve_asked(), "gpus", "speedup", "1", {}, "inf"}),
             Contains("'inf' is not a number above zero"));
  CHECK_THAT(refused({solve_asked(), "gpus", "speedup", "inf", {}, {}}), Contains("too large"));
  WhatIf plain = solve_asked();
  plain["optimizer"] = "lamb";
  CHECK_THAT(refused({plain, "gpus", "speedup", "1", {}, {}}), Contains("the run has none"));
  WhatIf unpriced = solve_asked();
  CHECK_THAT(refused({unpriced, "gpus", "cost", "1", {}, {}}), Contains("the run has none"));
  CHECK_THAT(refused({solve_asked(), "cluster.nic.count", "speedup", "1", {}, {}}),
             Contains("--from and --to"));
}

TEST_CASE("solve: a metric that passes its target several times is shown with all passes") {
  Solution made_up;
  made_up.metric = &find_metric("speedup", {});
  made_up.key = "gpus";
  made_up.target = 1;
  for (int i = 0; i < 6; ++i)
    made_up.points.push_back({static_cast<double>(i),
                              std::to_string(i),
                              {i % 2 == 0 ? 0.9 : 1.1, {}, {}},
                              i % 2 == 1,
                              true});
  made_up.passes = {1, 2, 3, 4, 5};
  CHECK(made_up.kind() == Solution::Kind::not_monotone);
  CHECK_THAT(solution_table(made_up),
             Contains("is not monotone in gpus: it passes 1.000x 5 times"));
  const auto json = nlohmann::json::parse(solution_json(made_up));
  CHECK(json.at("kind") == "not_monotone");
  CHECK(json.at("brackets").size() == 5);
}

}  // namespace
}  // namespace lambcast
