#include "models/training/run/known_runs.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "models/training/run/training_case.h"

namespace lambcast {
namespace {

std::vector<TrainingPlan> unlike_runs() {
  std::vector<TrainingPlan> all;
  const TrainingPlan run = training_of({});
  const auto with = [&](const auto& change) {
    TrainingPlan changed = run;
    change(changed);
    all.push_back(changed);
  };
  with([](TrainingPlan&) {});
  with([](TrainingPlan& t) { t.steps = 7000; });
  with([](TrainingPlan& t) { t.recipe.onebit.freeze_step = 3000; });
  with([](TrainingPlan& t) { t.steps_done = 500; });
  with([](TrainingPlan& t) {
    t.batch = {16 * 8 * 4, 16, 4};
    t.ramp = BatchRamp{128, 128, 128 * 3000};
  });
  with([](TrainingPlan& t) { t.batch = {16 * 8 * 2, 16, 2}; });
  with([](TrainingPlan& t) { t.seq_len = 256; });
  with([](TrainingPlan& t) { t.kernels = Kernels::fused; });
  with([](TrainingPlan& t) { t.recipe.backend = Backend::mpi_host; });
  with([](TrainingPlan& t) { t.recipe.gradient_clipping = 1; });
  with([](TrainingPlan& t) { t.recipe.precision.weights = DataType::fp32; });
  with([](TrainingPlan& t) { t.recipe.optimizer = OptimizerType::zero_one_adam; });
  with([](TrainingPlan& t) { t.recipe.optimizer = OptimizerType::lamb; });
  with([](TrainingPlan& t) {
    Curriculum& lengths = t.recipe.curriculum.emplace();
    lengths.min_difficulty = 64;
    lengths.max_difficulty = 128;
    lengths.total_step = 1000;
    lengths.difficulty_step = 2;
  });
  with([](TrainingPlan& t) {
    t.recipe.optimizer = OptimizerType::adam;
    t.exchange = parse_exchange("powersgd:4 / start 1000", {});
  });
  with([](TrainingPlan& t) {
    t.cluster = std::make_shared<const Cluster>(load_cluster("commodity-10gbe", {}));
  });
  return all;
}

TEST_CASE("known runs: steps before an exchange begins are those of an all_reduce") {
  const auto run_of = [](const std::string& exchange, std::int64_t steps) {
    TrainingPlan training = training_of({.optimizer = OptimizerType::adam, .gpus = 32});
    training.steps = steps;
    training.exchange = parse_exchange(exchange, {});
    if (training.exchange.site == Exchange::of_a_node)
      training.exchange.site = training.gpus_per_node;
    return forecast_of(training).run.time_s;
  };
  for (const char* exchange : {"powersgd:4", "int8 / two-level", "localsgd:8 / nodes"}) {
    INFO(exchange);
    const double before = run_of("all_reduce", 1000), behind = run_of(exchange, 800);
    CHECK(run_of(std::string(exchange) + " / start 1000", 1800) == Approx(before + behind));
    CHECK(run_of(std::string(exchange) + " / start 1000", 1000) == Approx(before));
  }
}

TEST_CASE("known runs: cached results of other runs equal those of the run's whole plan") {
  const std::vector<TrainingPlan> runs = unlike_runs();
  CollectiveCosts costs;
  std::size_t most_steps = 0;
  for (int times = 0; times < 2; ++times) {
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const MemoryForecast held = known_runs(costs).of(runs[i]).memory();
      const MemoryForecast anew = forecast_memory(runs[i]);
      CHECK(held.parts == anew.parts);
      CHECK(held.peak == anew.peak);
      CHECK(held.fits == anew.fits);
      most_steps = std::max(most_steps, distinct_steps(runs[i]).size());
      for (const DistinctStep& step : distinct_steps(runs[i])) {
        INFO("run " << i << ", " << name_of(step.kind) << " step of " << step.seq_len);
        if (i % 2 == 0) known_runs(costs).of(runs[i]).step(step, costs, Sources::left_out);
        const KnownStep& known = known_runs(costs).of(runs[i]).step(step, costs, Sources::noted);
        CollectiveCosts fresh;
        CostSources sources;
        const StepRun alone = run_step(runs[i], step, fresh, Intervals::found, &sources);
        CHECK(known.metrics.step_time == alone.metrics.step_time);
        CHECK(known.metrics.step_time_low == alone.metrics.step_time_low);
        CHECK(known.metrics.step_time_high == alone.metrics.step_time_high);
        CHECK(known.metrics.backward == alone.metrics.backward);
        CHECK(known.metrics.compress == alone.metrics.compress);
        CHECK(known.metrics.optimizer == alone.metrics.optimizer);
        CHECK(known.metrics.wire_bytes_per_gpu == alone.metrics.wire_bytes_per_gpu);
        const TimeAtEnds time = time_at_ends(alone, runs[i]);
        CHECK(known.time.s == time.s);
        CHECK(std::ranges::equal(known.time.at, time.at, [](const auto& a, const auto& b) {
          return a.low_s == b.low_s && a.high_s == b.high_s;
        }));
        const auto said = RunSources(*known.sources).shares(), found = RunSources(sources).shares();
        CHECK(std::ranges::equal(said, found, [](const CostSource& a, const CostSource& b) {
          return a.cost == b.cost && a.share == b.share;
        }));
      }
    }
  }
  CHECK(most_steps > 32);  // more than are cached, and so are the runs
}

TEST_CASE("known runs: the time that is forecast on its own is that of the whole forecast") {
  for (const TrainingPlan& run : unlike_runs()) {
    CollectiveCosts costs, others;
    const TimeAtEnds time = run_time(run, costs), whole = forecast_alone(run, others).time;
    CHECK(time.s == whole.s);
    CHECK(std::ranges::equal(time.at, whole.at, [](const auto& a, const auto& b) {
      return a.low_s == b.low_s && a.high_s == b.high_s;
    }));
  }
}

TEST_CASE("known runs: runs that freeze at other steps reuse all steps") {
  TrainingPlan training = training_of({});
  CollectiveCosts costs;
  const double early = forecast(training, costs).run.time_s;
  const std::int64_t asked = costs.counts().asked;
  training.recipe.onebit.freeze_step = 4000;
  training.steps = 6000;
  CHECK(forecast(training, costs).run.time_s > early);
  CHECK(costs.counts().asked == asked);
  training.gpus = 16;
  training.batch = {16 * 16, 16, 1};
  forecast(training, costs);
  CHECK(costs.counts().asked > asked);
}

}  // namespace
}  // namespace lambcast
