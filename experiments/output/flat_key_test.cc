#include "experiments/output/flat_key.h"

#include <catch2/catch.hpp>
#include <set>

#include "experiments/advise/advice_list.h"
#include "experiments/compare/numeric_inputs.h"
#include "experiments/compare/solve.h"
#include "experiments/compare/solve_output.h"
#include "experiments/scenario/scenario_case.h"
#include "experiments/sweep/sweep.h"
#include "experiments/sweep/sweep_plan.h"
#include "experiments/sweep/sweep_table.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

const WhatIf base{{"model", "bert-large"}, {"cluster", "dgx2h-v100"}, {"gpus", "32"},
                  {"micro_batch", "16"},   {"optimizer", "lamb"},     {"steps", "100"}};

std::string swept(const WhatIf& what_if, const std::string& key,
                  const std::vector<std::string>& values) {
  const SweepPlan plan = plan_sweep_of_flags(what_if, {{key, values}});
  Catalog catalog;
  CollectiveCosts costs;
  std::vector<std::string> rows;
  for (const WhatIf& point : plan.points) rows.push_back(sweep_row(point, catalog, costs).text);
  return sweep_table(plan, rows);
}

TEST_CASE("flat keys: values within rounding are the same, others are not") {
  CHECK(is_flat(std::array{1.0, 1.0 + 1e-9}));
  CHECK_FALSE(is_flat(std::array{1.0, 1.0001}));
  CHECK(is_flat(std::array{0.0, 0.0}));
  const double absent = std::nan("");
  CHECK(is_flat(std::array{absent, absent}));
  CHECK_FALSE(is_flat(std::array{absent, 1.0}));
}

// Doubles and triples every number of a description. The table of the sweep must report no effect
// exactly if time, cost, memory and speed-up all stay the same.
TEST_CASE("flat keys: a sweep reports every key without effect") {
  const TrainingPlan training = resolved(base).training;
  std::size_t flat = 0, moving = 0;
  for (const NumericInput& input : numeric_inputs(training)) {
    if (input.words == nullptr) continue;
    const std::vector<std::string> values{input.text(2 * input.number),
                                          input.text(3 * input.number)};
    std::set<std::vector<double>> results;
    bool runs = true;
    for (const std::string& value : values) {
      WhatIf point = base;
      point[input.key] = value;
      try {
        CollectiveCosts costs;
        const Forecast forecast = lambcast::forecast(resolved(point).training, costs);
        results.insert({forecast.run.time_s, forecast.run.cost_usd.value_or(0)});
      } catch (const Error&) {
        runs = false;
      }
    }
    if (!runs) continue;
    INFO(input.key);
    const bool says = swept(base, input.key, values).find(input.key + " moves nothing here: ") !=
                      std::string::npos;
    CHECK(says == (results.size() == 1));
    ++(says ? flat : moving);
  }
  CHECK(flat > 0);
  CHECK(moving > 0);
}

TEST_CASE("flat keys: the limit that holds in place of a key is named") {
  const WhatIf one_nic = with({{"cluster.nic.count", "1"}}, base);
  // The path from a GPU to its only NIC allows 104 Gbit/s; the NIC's 96 Gbit/s limit it first.
  CHECK_THAT(flat_key_text("cluster.node.gpu_nic", resolved(one_nic).training),
             Contains("nic.bandwidth of 96 Gbit/s is less"));
  CHECK_THAT(
      flat_key_text("cluster.nic.bandwidth",
                    resolved(with({{"cluster.nic.bandwidth", "400Gbit/s"}}, one_nic)).training),
      Contains("node.gpu_nic of 104 Gbit/s (assumed)"));
  CHECK_THAT(swept(with({{"gpus", "16"}}, base), "cluster.nic.bandwidth", {"10Gbit/s", "20Gbit/s"}),
             Contains("cluster.nic.bandwidth moves nothing here: no NIC carries anything within "
                      "one node."));
}

TEST_CASE("flat keys: more TCP streams than a NIC needs name the NIC") {
  const WhatIf tcp = with({{"cluster", "commodity-10gbe"}, {"gpus", "16"}}, base);
  CHECK_THAT(swept(tcp, "cluster.nccl.connections", {"8", "64"}),
             Contains("cluster.nccl.connections moves nothing here: nic.bandwidth of 9.4 Gbit/s is "
                      "less than the TCP streams to a peer carry."));
}

TEST_CASE("flat keys: advice over a list names a key without effect") {
  const WhatIf asked = with({{"global_batch", "4096"}, {"steps", "6000"}}, base);
  Catalog catalog;
  const std::string text = advice_list_text(
      advise_all(asked, {{"cluster.node.host_memory", {"1GB/s", "500GB/s"}}}, catalog));
  CHECK_THAT(text, Contains("\ncluster.node.host_memory moves nothing here: "));
}

TEST_CASE("flat keys: solve names the limit if a target is not reached") {
  Catalog catalog;
  const auto answered = [&](const std::string& key, const std::string& low,
                            const std::string& high) {
    return solution_table(solve({base, key, "run_time", "1 s", low, high}, catalog));
  };
  CHECK_THAT(answered("cluster.node.host_memory", "1GB/s", "500GB/s"),
             StartsWith("cluster.node.host_memory moves nothing here: ") &&
                 Contains(" The limit: compute is "));
  CHECK_THAT(answered("device.copy_bandwidth", "100GB/s", "2TB/s"),
             Contains(" is not reached anywhere from ") && Contains(" The limit: at 2000 GB/s "));
}

}  // namespace
}  // namespace lambcast
