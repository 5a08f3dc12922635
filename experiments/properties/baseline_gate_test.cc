// Gate: a speed-up is the time of the plain run, as forecast on its own, over the time of the run.
//
// Tests a few settings; the long form ("[.long]") tests all clusters.
#include <catch2/catch.hpp>
#include <optional>
#include <string>

#include "experiments/scenario/scenario.h"
#include "models/optimizer/optimizer_model.h"
#include "models/training/run/forecast.h"
#include "sim/base/error.h"
#include "topologies/cluster.h"

namespace lambcast {
namespace {

struct Asked {
  TrainingPlan training;
  RunForecast run;
};

// Returns the forecast of the question; nothing if the program does not support this run.
std::optional<Asked> asked(const WhatIf& what_if, Catalog& catalog) {
  try {
    const TrainingPlan training = resolve(what_if, catalog).training;
    CollectiveCosts costs;
    return Asked{training, forecast(training, costs).run};
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Returns whether the question runs and is compared with another run.
bool check_baseline(WhatIf what_if, Catalog& catalog) {
  const auto run = asked(what_if, catalog);
  if (!run) return false;
  const OptimizerType type = run->training.optimizer();
  if (run->training.exchange == Exchange{} && baseline_of(type) == type) return false;
  what_if["optimizer"] = std::string(name_of(baseline_of(type)));
  for (const char* key : {"exchange", "freeze_step", "backend"}) what_if.erase(key);
  // The plain run uses the kernels of the framework, even if this run uses the shipped ones.
  if (baseline_of(type) != type) what_if.erase("kernels");
  const auto plain = asked(what_if, catalog);
  REQUIRE(plain);
  CHECK(run->run.speedup_vs_baseline == Approx(plain->run.time_s / run->run.time_s).epsilon(1e-9));
  return true;
}

void check_cluster(const std::string& cluster) {
  Catalog catalog;
  int checked = 0;
  for (const char* framework : {"deepspeed", "pytorch", "megatron", "torchtitan", "colossalai"})
    for (const char* optimizer :
         {"adamw", "lamb", "sgd", "onebit_adam", "onebit_lamb", "zero_one_adam"})
      for (const char* exchange : {"", "localsgd:16", "powersgd:4", "randomk:1%", "int8"})
        for (const char* kernels : {"", "fused"}) {
          WhatIf what_if{{"model", "gpt2-xl"},     {"cluster", cluster},    {"nodes", "2"},
                         {"micro_batch", "2"},     {"grad_accum", "2"},     {"steps", "1000"},
                         {"framework", framework}, {"optimizer", optimizer}};
          const std::string name = optimizer;
          if (name.starts_with("onebit")) what_if["freeze_step"] = "200";
          if (*exchange != '\0') what_if["exchange"] = exchange;
          if (*kernels != '\0') what_if["kernels"] = kernels;
          INFO(cluster << " " << framework << " " << optimizer << " " << exchange << " "
                       << kernels);
          checked += check_baseline(what_if, catalog);
        }
  INFO(cluster);
  CHECK(checked > 40);
}

TEST_CASE("baseline gate: a run is compared with the plain run of the same question") {
  for (const char* cluster : {"hgx-h100-ndr", "dgx-a100-80g", "paper-eth40-v100"})
    check_cluster(cluster);
}

TEST_CASE("baseline gate: the long form", "[.long]") {
  for (const std::string& cluster : cluster_names())
    if (load_cluster(cluster, {}).max_nodes > 1) check_cluster(cluster);
}

}  // namespace
}  // namespace lambcast
