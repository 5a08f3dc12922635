// Gate over the shipped presets: every optimizer is forecast on any number of GPUs, with both
// network models.
//
// CI forecasts a sample. To forecast all:
//   build/experiments/preset_scale_test "awkward counts: every*"
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/scenario/scenario_case.h"
#include "models/optimizer/optimizer_model.h"
#include "models/training/run/forecast.h"
#include "topologies/cluster.h"

namespace lambcast {
namespace {

constexpr int most_gpus = 1 << 20;

// Returns GPU counts with a prime number of nodes, with a partly filled last node or leaf, and the
// maximum.
std::vector<int> awkward_counts(const Cluster& cluster) {
  const int gpus = cluster.gpus_per_node, leaf = cluster.fabric.nodes_per_leaf;
  std::vector<int> counts{13 * gpus, 13 * gpus + 1, 1021 * gpus, most_gpus / gpus * gpus,
                          most_gpus - 1};
  if (cluster.fabric.kind != FabricKind::single_switch)
    for (const int nodes : {leaf + 1, 2 * leaf + 13, 64 * leaf - 1, 64 * leaf})
      counts.push_back(std::min(most_gpus, nodes * gpus));
  std::erase_if(counts, [&](int count) { return (count + gpus - 1) / gpus > cluster.max_nodes; });
  return counts;
}

WhatIf counted(const std::string& cluster, const std::string& optimizer, int gpus, bool flow,
               bool mpi) {
  WhatIf what_if = with({{"cluster", cluster},
                         {"optimizer", optimizer},
                         {"gpus", fmt::format("{}", gpus)},
                         {"micro_batch", "1"},
                         {"grad_accum", "1"},
                         {"network", flow ? "flow" : "analytic"},
                         {"steps", "1000"},
                         {"freeze_step", "100"}});
  what_if.erase("global_batch");
  const bool compresses = optimizer.starts_with("onebit") || optimizer.starts_with("zero_one");
  if (!compresses) what_if.erase("freeze_step");
  if (mpi && compresses) what_if.insert_or_assign("backend", "mpi");
  return what_if;
}

// Forecasts every `stride`-th combination; returns their number.
int walk_awkward_counts(std::size_t stride) {
  Catalog catalog;
  std::size_t at = 0;
  int forecast = 0;
  for (const std::string& name : cluster_names()) {
    CollectiveCosts costs;
    for (const int gpus : awkward_counts(load_cluster(name, {})))
      for (const std::string& optimizer : optimizer_names())
        for (const auto& [flow, mpi] : {std::pair{false, false}, {true, false}, {false, true}}) {
          if (at++ % stride != 0) continue;
          INFO(optimizer << " on " << gpus << " GPUs of " << name << (flow ? ", flow" : "")
                         << (mpi ? ", mpi" : ""));
          const WhatIf asked = counted(name, optimizer, gpus, flow, mpi);
          try {
            const auto steps = forecast_alone(resolve(asked, catalog).training, costs).steps;
            for (const StepForecast& step : steps)
              CHECK((std::isfinite(step.step_time_us) && step.step_time_us > 0));
            ++forecast;
          } catch (const Error& error) {
            FAIL_CHECK(error.what());
          }
        }
  }
  return forecast;
}

TEST_CASE("awkward counts: a sample of presets, optimizers and numbers of GPUs") {
  CHECK(walk_awkward_counts(31) > 250);
}

TEST_CASE("awkward counts: every preset, optimizer and number of GPUs", "[.long]") {
  CHECK(walk_awkward_counts(1) > 9000);
}

}  // namespace
}  // namespace lambcast
