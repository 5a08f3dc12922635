#include "models/training/known_steps.h"

#include <catch2/catch.hpp>
#include <vector>

#include "models/training/training_case.h"

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
    lengths.difficulty_step = 8;
  });
  with([](TrainingPlan& t) {
    t.cluster = std::make_shared<const Cluster>(load_cluster("commodity-10gbe", {}));
  });
  return all;
}

TEST_CASE("known steps: what is remembered of other runs is what a run alone finds") {
  const std::vector<TrainingPlan> runs = unlike_runs();
  CollectiveCosts costs;
  for (int times = 0; times < 2; ++times) {
    for (std::size_t i = 0; i < runs.size(); ++i) {
      INFO("run " << i);
      const Forecast known = forecast(runs[i], costs), alone = forecast_of(runs[i]);
      CHECK(known.run.time_s == alone.run.time_s);
      CHECK(known.run.time_low_s == alone.run.time_low_s);
      CHECK(known.run.speedup_vs_baseline == alone.run.speedup_vs_baseline);
      CHECK(known.run.wire_bytes_per_gpu == alone.run.wire_bytes_per_gpu);
      REQUIRE(known.sources.size() == alone.sources.size());
      for (std::size_t s = 0; s < known.sources.size(); ++s) {
        CHECK(known.sources[s].cost == alone.sources[s].cost);
        CHECK(known.sources[s].share == alone.sources[s].share);
      }
      if (alone.run.speedup) CHECK(known.run.speedup->low == alone.run.speedup->low);
    }
  }
}

TEST_CASE("known steps: runs that freeze at other steps run none anew") {
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
