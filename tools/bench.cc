// The speeds that the manual quotes: lambcast_bench (build with -DLAMBCAST_BENCH=ON).
#include <benchmark/benchmark.h>

#include "experiments/scenario/scenario.h"
#include "experiments/sweep/sweep.h"
#include "models/training/run/forecast.h"
#include "sim/collectives/collective.h"
#include "topologies/cluster.h"
#include "topologies/collective_jobs.h"

namespace {

using namespace lambcast;

// A ring all-reduce of 680 MB over all ranks, 8 per node; includes planning and routing.
void ring(benchmark::State& state, bool expand) {
  const Cluster cluster = load_cluster("azure-ndv2", {});
  const int ranks = static_cast<int>(state.range(0));
  const Transport transport = transport_of(cluster, Backend::nccl);
  Duration time;
  for (auto _ : state) {
    Machines machines = machines_of(cluster, Backend::nccl, {ranks, 8});
    const CollectiveRequest request{Op::all_reduce, Bytes(680e6), {ranks, 8}, DecisionRules::nccl,
                                    "ring",         "Simple",     expand};
    time = simulate(plan_collective(request, machines, transport), NetworkModel::flow);
  }
  state.counters["forecast_ms"] = time.ms();
}
BENCHMARK_CAPTURE(ring, event_by_event, true)
    ->Arg(64)
    ->Arg(256)
    ->Arg(1024)
    ->Arg(16384)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(ring, folded, false)->Arg(1024)->Arg(65536)->Unit(benchmark::kMillisecond);

// Collectives with many routes, simulated with every rank.
void routes(benchmark::State& state, Op op, const char* algorithm) {
  const Cluster cluster = load_cluster("hgx-h100-ndr", {});
  const int ranks = static_cast<int>(state.range(0));
  const Transport transport = transport_of(cluster, Backend::nccl);
  for (auto _ : state) {
    Machines machines = machines_of(cluster, Backend::nccl, {ranks, 8});
    const CollectiveRequest request{op,        Bytes(1e9), {ranks, 8}, DecisionRules::nccl,
                                    algorithm, "",         true};
    benchmark::DoNotOptimize(plan_collective(request, machines, transport).time);
  }
}
BENCHMARK_CAPTURE(routes, pairwise, Op::all_to_all, "pairwise")
    ->Arg(2048)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(routes, linear, Op::all_to_all, "linear")
    ->Arg(2048)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(routes, halving_doubling, Op::all_reduce, "halving_doubling")
    ->Arg(16384)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(routes, hierarchical, Op::all_reduce, "hierarchical")
    ->Arg(65536)
    ->Unit(benchmark::kMillisecond);

// Runs rings over 16 nodes each at the same time, on separate nodes or on the same ones. A single
// ring runs with all rounds known in advance; two or more are simulated flow by flow.
void rings_at_once(benchmark::State& state, bool contend) {
  const Cluster cluster = load_cluster("azure-ndv2", {});
  std::vector<CollectiveJob> jobs(static_cast<std::size_t>(state.range(0)));
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    jobs[i].size = Bytes(1e6 * (64 + static_cast<double>(i)));
    jobs[i].group = {16, 1, 8};
    if (contend)
      jobs[i].place.slot = static_cast<int>(i % 8);
    else
      jobs[i].place.node = static_cast<int>(16 * i);
    jobs[i].algorithm = "ring";
    jobs[i].times = 10;
  }
  for (auto _ : state)
    benchmark::DoNotOptimize(forecast_jobs(cluster, jobs, Backend::nccl, true).back().together);
}
BENCHMARK_CAPTURE(rings_at_once, apart, false)
    ->Arg(1)
    ->Arg(2)
    ->Arg(256)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(rings_at_once, contending, true)->Arg(16)->Unit(benchmark::kMillisecond);

// One 1-bit LAMB step in each stage, without any cache except the shape of NCCL's trees.
void onebit_lamb_step(benchmark::State& state, bool oversubscribed) {
  Catalog catalog;
  WhatIf asked{{"model", "bert-large"},
               {"cluster", "hgx-h100-ndr"},
               {"gpus", std::to_string(state.range(0))},
               {"optimizer", "onebit_lamb"},
               {"micro_batch", "16"},
               {"grad_accum", "1"},
               {"steps", "100"},
               {"freeze_step", "10"}};
  if (oversubscribed)
    asked.insert({{"cluster.fabric.kind", "fat-tree"},
                  {"cluster.fabric.nodes_per_leaf", "4"},
                  {"cluster.fabric.oversubscription", "4.0"}});
  const Scenario scenario = resolve(asked, catalog);
  for (auto _ : state) {
    CollectiveCosts costs;
    benchmark::DoNotOptimize(forecast(scenario.training, costs).run.time_s);
  }
}
BENCHMARK_CAPTURE(onebit_lamb_step, one_switch, false)
    ->Arg(256)
    ->Arg(65536)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(onebit_lamb_step, fat_tree_of_4_to_1, true)
    ->Arg(2048)
    ->Arg(65536)
    ->Unit(benchmark::kMillisecond);

// Points of the default study on one core, from text to CSV row.
void default_study(benchmark::State& state) {
  const SweepPlan plan = plan_sweep(study_text("bert_large"), "bert_large", {});
  std::size_t points = 0, bytes = 0;
  for (auto _ : state) {
    Catalog catalog;
    CollectiveCosts costs;
    for (const WhatIf& point : plan.points) bytes += sweep_row(point, catalog, costs).text.size();
    points += plan.points.size();
  }
  benchmark::DoNotOptimize(bytes);
  state.counters["points_per_s"] =
      benchmark::Counter(static_cast<double>(points), benchmark::Counter::kIsRate);
}
BENCHMARK(default_study)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
