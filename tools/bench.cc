// The speeds that the README quotes: lambcast_bench (build with -DLAMBCAST_BENCH=ON).
#include <benchmark/benchmark.h>

#include "experiments/scenario.h"
#include "experiments/sweep.h"
#include "models/training/forecast.h"
#include "sim/collectives/collective.h"
#include "topologies/cluster.h"

namespace {

using namespace lambcast;

// A ring all-reduce of 680 MB over all ranks, 8 a node; planning and routing included.
void ring(benchmark::State& state, bool expand) {
  const Cluster cluster = load_cluster("azure-ndv2", {});
  const int ranks = static_cast<int>(state.range(0));
  const Transport transport = transport_of(cluster, cluster.nccl, Endpoint::gpu);
  Duration time;
  for (auto _ : state) {
    Machines machines = machines_of(cluster, cluster.nccl, {ranks, 8});
    const CollectiveRequest request{Op::all_reduce, Bytes(680e6), {ranks, 8}, Library::nccl,
                                    "ring",         "Simple",     expand};
    time = simulate(plan_collective(request, machines, transport), NetworkModel::flow);
  }
  state.counters["forecast_ms"] = time.ms();
}
BENCHMARK_CAPTURE(ring, event_by_event, true)
    ->Arg(64)
    ->Arg(256)
    ->Arg(1024)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(ring, folded, false)->Arg(1024)->Arg(65536)->Unit(benchmark::kMillisecond);

// One 1-bit LAMB step in each stage, nothing remembered from before.
void onebit_lamb_step(benchmark::State& state) {
  Catalog catalog;
  const Scenario scenario = resolve({{"model", "bert-large"},
                                     {"cluster", "hgx-h100-ndr"},
                                     {"gpus", std::to_string(state.range(0))},
                                     {"optimizer", "onebit_lamb"},
                                     {"micro_batch", "16"},
                                     {"grad_accum", "1"},
                                     {"steps", "100"},
                                     {"freeze_step", "10"}},
                                    catalog);
  for (auto _ : state) {
    CollectiveCosts costs;
    benchmark::DoNotOptimize(forecast(scenario.training, costs).run.time_s);
  }
}
BENCHMARK(onebit_lamb_step)->Arg(256)->Arg(65536)->Unit(benchmark::kMillisecond);

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
