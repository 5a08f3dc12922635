// Continuity of forecasts under a change of any number of a cluster or device (--set). A change of
// 0.01 % changes the time of a run, its ends and its speed-up by at most 1 %. A change of 1 %
// changes them by at most 5 %. Exempt are changes at which a finding reports a switch of the
// algorithm. topologies/continuity_gate_test.cc tests the same for single collectives.
//
// Tests a few settings; the long form ("[.long]") tests all clusters.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <optional>
#include <string>

#include "experiments/compare/numeric_inputs.h"
#include "experiments/scenario/scenario.h"
#include "models/training/run/forecast.h"
#include "sim/base/error.h"
#include "topologies/cluster.h"

namespace lambcast {
namespace {

struct Step {
  double nudge, most;
};
constexpr Step steps[] = {{1e-4, 0.01}, {1e-2, 0.05}};

struct Answers {
  double time_s, low_s, high_s, speedup;
  std::string tips;  // algorithms named by the finding, without its numbers
};

std::string without_numbers(std::string text) {
  std::erase_if(text, [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
  return text;
}

Answers answers_to(const WhatIf& what_if, Catalog& catalog) {
  const TrainingPlan training = resolve(what_if, catalog).training;
  CollectiveCosts costs;
  const Forecast result = forecast(training, costs);
  std::string tips;
  for (const Finding& finding : judge(training, result))
    if (finding.code == "algorithm-tips") tips += without_numbers(finding.message);
  return {result.run.time_s, result.run.time_low_s, result.run.time_high_s,
          result.run.speedup_vs_baseline, tips};
}

void check_near(const char* what, double before, double after, double most) {
  INFO(what << ": " << before << " and " << after);
  CHECK(std::abs(std::log(after / before)) <= most);
}

// Returns the answers with the number multiplied by `factor`; nothing if that is out of range.
std::optional<Answers> nudged_answers(WhatIf what_if, const NumericInput& input, double factor,
                                      Catalog& catalog) {
  what_if[input.key] = input.text(input.number * factor);
  try {
    return answers_to(what_if, catalog);
  } catch (const Error&) {
    return std::nullopt;
  }
}

void check_input(const WhatIf& what_if, const NumericInput& input, const Answers& before,
                 const Step& step, Catalog& catalog) {
  // A share of one and a rate at its name plate can only be lowered.
  std::optional<Answers> changed = nudged_answers(what_if, input, 1 + step.nudge, catalog);
  if (!changed) changed = nudged_answers(what_if, input, 1 - step.nudge, catalog);
  INFO(input.key << " of " << what_if.at("cluster") << " by " << 100 * step.nudge << " %");
  REQUIRE(changed);
  if (before.tips != changed->tips) return;
  check_near("time", before.time_s, changed->time_s, step.most);
  check_near("low end", before.low_s, changed->low_s, step.most);
  check_near("high end", before.high_s, changed->high_s, step.most);
  check_near("speed-up", before.speedup, changed->speedup, step.most);
}

void check_continuity(const WhatIf& what_if) {
  Catalog catalog;
  const TrainingPlan training = resolve(what_if, catalog).training;
  const Answers before = answers_to(what_if, catalog);
  for (const NumericInput& input : numeric_inputs(training))
    for (const Step& step : steps) check_input(what_if, input, before, step, catalog);
}

WhatIf nudged_compressed(const std::string& cluster) {
  return {{"model", "bert-large"}, {"cluster", cluster},  {"nodes", "4"},
          {"micro_batch", "16"},   {"grad_accum", "4"},   {"optimizer", "onebit_lamb"},
          {"steps", "1000"},       {"freeze_step", "160"}};
}

WhatIf nudged_divided(const std::string& cluster) {
  return {{"model", "gpt2-xl"},      {"cluster", cluster}, {"nodes", "4"},
          {"framework", "megatron"}, {"micro_batch", "2"}, {"grad_accum", "8"},
          {"optimizer", "adamw"},    {"steps", "10"},      {"zero_stage", "1"}};
}

TEST_CASE("step continuity gate: no number of a description makes a forecast jump") {
  for (const char* cluster :
       {"paper-eth40-v100", "commodity-10gbe", "dgx-a100-80g", "aws-g4dn", "alps-gh200-tcp"})
    check_continuity(nudged_compressed(cluster));
  for (const char* cluster : {"hgx-h100-ndr", "dgx2-v100"})
    check_continuity(nudged_divided(cluster));
}

// NCCL rounds a NIC's rate down to a listed speed and rates its algorithms by the result
// (nccl_tuning.cc). So the algorithm may change at each listed speed.
TEST_CASE("step continuity gate: a NIC at a listed speed of NCCL makes no forecast jump unnamed") {
  Catalog catalog;
  int named = 0;
  for (const char* cluster : {"commodity-10gbe", "paper-eth40-v100", "dgx-a100-80g"})
    for (const double listed_GBps : {50.0, 48.0, 40.0, 30.0, 28.0, 24.0, 20.0, 18.0, 15.0, 12.0,
                                     10.0, 9.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.4, 1.2}) {
      WhatIf what_if = nudged_compressed(cluster);
      what_if["nodes"] = "2";
      what_if["optimizer"] = "lamb";
      what_if.erase("freeze_step");
      NumericInput input;
      input.key = "cluster.nic.bandwidth";
      input.number = listed_GBps * 8e9 / 1.001;
      input.text = [](double at) { return fmt::format("{:.17g} bit/s", at); };
      const auto below = nudged_answers(what_if, input, 1 - 5e-5, catalog);
      const auto above = nudged_answers(what_if, input, 1 + 5e-5, catalog);
      if (!below || !above) continue;
      INFO(cluster << " at " << listed_GBps << " GB/s");
      named += below->tips != above->tips;
      if (below->tips != above->tips) continue;
      check_near("time", below->time_s, above->time_s, 0.01);
      check_near("low end", below->low_s, above->low_s, 0.01);
      check_near("high end", below->high_s, above->high_s, 0.01);
    }
  CHECK(named > 0);
}

TEST_CASE("step continuity gate: the long form", "[.long]") {
  for (const std::string& cluster : cluster_names()) {
    if (load_cluster(cluster, {}).max_nodes < 4) continue;
    check_continuity(nudged_compressed(cluster));
    check_continuity(nudged_divided(cluster));
  }
}

}  // namespace
}  // namespace lambcast
