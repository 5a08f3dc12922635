// Continuity of forecasts: a change of 0.01 % of any number of a cluster or device, asked for with
// --set, moves the time of a run, its ends and its speed-up by at most 1 %, unless a finding names
// the algorithm that tips. topologies/continuity_gate_test.cc asks the same of single collectives.
//
// A few settings here; all clusters in the long form ("[.long]").
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <optional>

#include "experiments/compare/numeric_inputs.h"
#include "experiments/scenario/scenario.h"
#include "models/training/run/forecast.h"
#include "sim/base/error.h"
#include "topologies/cluster.h"

namespace lambcast {
namespace {

constexpr double nudge = 1e-4, most = 0.01;

struct Answers {
  double time_s, low_s, high_s, speedup;
  bool tips;
};

Answers answers_to(const WhatIf& what_if, Catalog& catalog) {
  const TrainingPlan training = resolve(what_if, catalog).training;
  CollectiveCosts costs;
  const Forecast result = forecast(training, costs);
  bool tips = false;
  for (const Finding& finding : judge(training, result))
    tips = tips || finding.code == "algorithm-tips";
  return {result.run.time_s, result.run.time_low_s, result.run.time_high_s,
          result.run.speedup_vs_baseline, tips};
}

void check_near(const char* what, double before, double after) {
  INFO(what << ": " << before << " and " << after);
  CHECK(std::abs(std::log(after / before)) <= most);
}

// Nothing if the number is out of its range.
std::optional<Answers> nudged_answers(WhatIf what_if, const NumericInput& input, double factor,
                                      Catalog& catalog) {
  what_if[input.key] = input.text(input.number * factor);
  try {
    return answers_to(what_if, catalog);
  } catch (const Error&) {
    return std::nullopt;
  }
}

void check_continuity(const WhatIf& what_if) {
  Catalog catalog;
  const TrainingPlan training = resolve(what_if, catalog).training;
  const Answers before = answers_to(what_if, catalog);
  for (const NumericInput& input : numeric_inputs(training)) {
    // A share of one, and a rate at its name plate, can only fall.
    std::optional<Answers> changed = nudged_answers(what_if, input, 1 + nudge, catalog);
    if (!changed) changed = nudged_answers(what_if, input, 1 - nudge, catalog);
    INFO(input.key << " of " << what_if.at("cluster"));
    REQUIRE(changed);
    const Answers& after = *changed;
    if (before.tips || after.tips) continue;
    check_near("time", before.time_s, after.time_s);
    check_near("low end", before.low_s, after.low_s);
    check_near("high end", before.high_s, after.high_s);
    check_near("speed-up", before.speedup, after.speedup);
  }
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
  for (const char* cluster : {"paper-eth40-v100", "commodity-10gbe", "dgx-a100-80g", "aws-g4dn"})
    check_continuity(nudged_compressed(cluster));
  for (const char* cluster : {"hgx-h100-ndr", "dgx2-v100"})
    check_continuity(nudged_divided(cluster));
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
