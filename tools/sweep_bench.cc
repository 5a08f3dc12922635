// Times of many points: a sweep, its tail, its report, its resumption, and fits of many tables
// (lambcast_sweep_bench; build with -DLAMBCAST_BENCH=ON). `of_limit` is the CPU time divided by its
// limit: above 1 is a regression.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <random>
#include <vector>

#include "experiments/report/report.h"
#include "experiments/sweep/sweep.h"
#include "sim/base/file.h"
#include "topologies/cluster.h"
#include "validate/calibrate/calibrate.h"
#include "validate/calibrate/measured_series.h"

namespace {

using namespace lambcast;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Returns CPU seconds of all threads, which are independent of other processes.
double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// A temporary folder that is removed with the object.
struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / fmt::format("lambcast_sweep_bench_{}", getpid());
  Folder() { std::filesystem::remove_all(path); }
  ~Folder() { std::filesystem::remove_all(path); }
};

// Returns 1-bit LAMB on four clusters, with five numbers of GPUs, five lengths, and as many freeze
// steps as are needed for `count` points.
SweepPlan points_of(std::int64_t count) {
  return plan_sweep_of_flags(
      {{"model", "bert-large"},
       {"optimizer", "onebit_lamb"},
       {"backend", "nccl"},
       {"micro_batch", "16"},
       {"global_batch", "4096"},
       {"steps", "1000000"}},
      {parse_list("cluster=commodity-10gbe,commodity-25gbe,commodity-100gbe,dgx-a100-80g"),
       parse_list("gpus=16,32,64,128,256"), parse_list("seq_len=64,128,256,384,512"),
       parse_scan(fmt::format("freeze_step=1:{}:1", count / 100))});
}

// Reports the seconds per million rows, and their ratio to the limit.
void set_per_million(benchmark::State& state, double seconds, double limit_s) {
  const double per_million = seconds / static_cast<double>(state.range(0)) * 1e6;
  state.counters["s_per_million"] = per_million;
  state.counters["of_limit"] = per_million / limit_s;
}

// A sweep into a folder: elapsed seconds until its end, and from the last row on.
struct Swept {
  double seconds = 0, tail = 0;
};
Swept sweep_with(const SweepPlan& plan, int jobs) {
  Folder folder;
  SweepOptions options{.out = folder.path, .jobs = jobs};
  const auto start = Clock::now();
  auto last = start;
  options.progress = [&](std::size_t, std::size_t) {
    last = Clock::now();
    return true;
  };
  run_sweep(plan, options);
  return {seconds_since(start), seconds_since(last)};
}

// Alternates sweeps with one thread and with two, so that a busy machine slows both.
void sweep(benchmark::State& state) {
  const SweepPlan plan = points_of(state.range(0));
  Swept one, two;
  double cpu = 0;
  for (auto _ : state) {
    const double before = cpu_seconds();
    const Swept alone = sweep_with(plan, 1);
    cpu += cpu_seconds() - before;
    const Swept both = sweep_with(plan, 2);
    one.seconds += alone.seconds;
    one.tail += alone.tail;
    two.seconds += both.seconds;
  }
  const auto points = static_cast<double>(state.range(0)) * static_cast<double>(state.iterations());
  state.counters["cpu_us_per_point"] = cpu / points * 1e6;
  state.counters["tail_share"] = one.tail / one.seconds;
  state.counters["gain_of_jobs_2"] = one.seconds / two.seconds;
}
BENCHMARK(sweep)->Arg(20000)->Unit(benchmark::kMillisecond)->UseRealTime();

// The same sweep with a different NIC in each point.
void new_clusters(benchmark::State& state) {
  const SweepPlan plan = plan_sweep_of_flags(
      {{"model", "bert-large"},
       {"cluster", "commodity-10gbe"},
       {"gpus", "32"},
       {"optimizer", "lamb"},
       {"micro_batch", "16"},
       {"global_batch", "4096"},
       {"steps", "1000"}},
      {parse_scan(fmt::format("cluster.nic.bandwidth=1Gbit/s:{}Gbit/s:1Gbit/s", state.range(0)))});
  double seconds = 0;
  for (auto _ : state) {
    const double start = cpu_seconds();
    const auto texts = std::make_shared<DescriptionTexts>();
    benchmark::DoNotOptimize(sweep_in_memory(plan, {}, texts).rows.size());
    seconds += cpu_seconds() - start;
  }
  const auto points = static_cast<double>(state.range(0)) * static_cast<double>(state.iterations());
  state.counters["cpu_us_per_point"] = seconds / points * 1e6;
}
BENCHMARK(new_clusters)->Arg(5000)->Unit(benchmark::kMillisecond)->UseRealTime();

void report_of(benchmark::State& state) {
  Folder folder;
  run_sweep(points_of(state.range(0)), {.out = folder.path, .jobs = 2});
  double seconds = 0;
  for (auto _ : state) {
    const double start = cpu_seconds();
    const report::Results results = report::read_results(folder.path);
    report::write_report(results, folder.path);
    seconds += cpu_seconds() - start;
  }
  set_per_million(state, seconds / static_cast<double>(state.iterations()), 1.79);
}
BENCHMARK(report_of)->Arg(1000000)->Unit(benchmark::kMillisecond)->UseRealTime();

void resume_with_nothing_left(benchmark::State& state) {
  Folder folder;
  const SweepPlan plan = points_of(state.range(0));
  run_sweep(plan, {.out = folder.path, .jobs = 2});
  double seconds = 0;
  for (auto _ : state) {
    const double start = cpu_seconds();
    run_sweep(plan, {.out = folder.path, .resume = true});
    seconds += cpu_seconds() - start;
  }
  set_per_million(state, seconds / static_cast<double>(state.iterations()), 2.26);
}
BENCHMARK(resume_with_nothing_left)->Arg(50000)->Unit(benchmark::kMillisecond)->UseRealTime();

// Returns tables of one machine with all sizes of nccl-tests: a sixth slower than its description,
// with errors of a few per cent in each row, so that no fit is exact.
std::vector<validate::Measurement> noisy_tables(const Cluster& machine, std::int64_t count) {
  using namespace validate;
  std::mt19937 random(1);
  std::vector<Measurement> tables;
  for (std::int64_t i = 0; i < count; ++i) {
    Measurement& table = tables.emplace_back();
    constexpr Operation operations[] = {Operation::all_reduce, Operation::all_gather,
                                        Operation::reduce_scatter, Operation::all_to_all};
    table.operation = operations[i % 4];
    table.nodes = 1 << (4 - i % 5);
    table.ranks = *table.nodes * (8 >> i % 3);
    table.provenance = {Kind::measured, fmt::format("made up {}", i)};
    MeasuredSeries series = series_of(table, machine, Backend::nccl);
    for (double size = 8; size <= 8.0 * (1 << 30); size *= 2) {
      double noise = -6;  // sum of twelve uniform numbers: nearly normal
      for (int j = 0; j < 12; ++j) noise += static_cast<double>(random()) / 4294967296.0;
      table.rows.push_back(
          {Bytes(size),
           forecast_time(series, Bytes(size)).scaled(1.15 * std::exp(0.05 * noise)),
           {}});
    }
  }
  return tables;
}

void fit(benchmark::State& state) {
  using namespace validate;
  const std::string base(cluster_text("dgx-a100-80g"));
  const std::vector<Measurement> tables =
      noisy_tables(load_cluster("dgx-a100-80g", {}), state.range(0));
  double seconds = 0;
  for (auto _ : state) {
    const double start = cpu_seconds();
    benchmark::DoNotOptimize(calibrate(base, "base.toml", tables).rows);
    seconds += cpu_seconds() - start;
  }
  state.counters["of_limit"] =
      seconds / static_cast<double>(state.iterations()) / (state.range(0) == 1 ? 0.5 : 4);
}
BENCHMARK(fit)->Arg(1)->Arg(50)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace

BENCHMARK_MAIN();
