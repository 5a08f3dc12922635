#include <catch2/catch.hpp>
#include <limits>

#include "models/training/run/training_case.h"

namespace lambcast {
namespace {

TEST_CASE("distinct steps: an exchange begins after its first steps, of a whole run") {
  TrainingPlan training = training_of({.optimizer = OptimizerType::adam, .gpus = 32});
  training.steps = 1000;
  training.exchange = parse_exchange("localsgd:8 / start 80", {});
  std::vector<DistinctStep> steps = distinct_steps(training);
  REQUIRE(steps.size() == 3);
  CHECK(steps[0].kind == StepKind::warmup);
  CHECK(steps[0].steps == 80);
  CHECK(steps[0].sums_gradients());
  CHECK(steps[1].kind == StepKind::silent);
  CHECK(steps[1].steps == 7 * 115);
  CHECK(steps[2].steps == 115);
  CHECK(in_step(training, steps[0]).exchange == Exchange{});
  CHECK(in_step(training, steps[2]).exchange == training.exchange);
  training.steps_done = 50;
  CHECK(distinct_steps(training)[0].steps == 30);
  training.steps_done = 80;
  CHECK(distinct_steps(training).size() == 2);
  training.steps_done = 0;
  training.steps = 60;
  steps = distinct_steps(training);
  REQUIRE(steps.size() == 1);
  CHECK(steps[0].steps == 60);
}

struct Counts {
  std::int64_t uniform = 0, warmup = 0, compression = 0, silent = 0;
  friend bool operator==(const Counts&, const Counts&) = default;
};

Counts counts_of(const TrainingPlan& training) {
  Counts counts;
  for (const DistinctStep& step : distinct_steps(training)) {
    CHECK(step.steps > 0);
    switch (step.kind) {
      case StepKind::dry_run:
        CHECK(step.steps == 1);
        counts.warmup += step.steps;
        break;
      case StepKind::round:
        counts.compression += step.steps;
        break;
      case StepKind::uniform:
        counts.uniform += step.steps;
        break;
      case StepKind::warmup:
        counts.warmup += step.steps;
        break;
      case StepKind::compression:
        counts.compression += step.steps;
        break;
      case StepKind::refresh:
        FAIL("nothing here is projected");
        break;
      case StepKind::silent:
        counts.silent += step.steps;
        break;
    }
  }
  CHECK(counts.uniform + counts.warmup + counts.compression + counts.silent == training.steps);
  return counts;
}

TEST_CASE("distinct steps: plain optimizers have a single one") {
  for (const auto type : {OptimizerType::adam, OptimizerType::adamw, OptimizerType::lamb})
    CHECK(counts_of(training_of({type})) == Counts{5993});
}

TEST_CASE("distinct steps: freeze_step F gives F - 1 warm-up updates with fp16 and F without") {
  struct Row {
    std::int64_t freeze_step, with_fp16, without;
  };
  // With fp16 the wrapper's dry run counts as a step; without it the dry run uses up the first real
  // gradient. With F = 0, 1 and 2 the variance freezes after the first step at which it can.
  const Row rows[] = {{0, 1, 2},      {1, 1, 2},          {2, 1, 2},          {3, 2, 3},
                      {100, 99, 100}, {5993, 5992, 5993}, {5994, 5993, 5993}, {100000, 5993, 5993}};
  for (const auto type : {OptimizerType::onebit_adam, OptimizerType::onebit_lamb}) {
    for (const Row& row : rows) {
      INFO("freeze_step " << row.freeze_step);
      TrainingPlan training = training_of({type});
      training.recipe.onebit.freeze_step = row.freeze_step;
      CHECK(counts_of(training) == Counts{0, row.with_fp16, 5993 - row.with_fp16});
      training.recipe.precision.weights = DataType::fp32;
      CHECK(counts_of(training) == Counts{0, row.without, 5993 - row.without});
    }
  }
}

TEST_CASE("distinct steps: without a wrapper the first step is a dry run") {
  for (const auto type :
       {OptimizerType::onebit_adam, OptimizerType::onebit_lamb, OptimizerType::zero_one_adam}) {
    TrainingPlan training = training_of({type});
    training.steps = 100;
    CHECK(distinct_steps(training).front().kind != StepKind::dry_run);
    training.recipe.precision.weights = DataType::fp32;
    const std::vector<DistinctStep> steps = distinct_steps(training);
    CHECK(steps[0].kind == StepKind::dry_run);
    CHECK(steps[0].steps == 1);
    // A dry run sums gradients in full and exchanges an empty momentum, but updates nothing.
    const StepMetrics dry = metrics_of(training, StepKind::dry_run);
    const StepMetrics warmup = metrics_of(training, StepKind::warmup);
    CHECK(dry.optimizer == Duration());
    CHECK(dry.compress > Duration());
    CHECK(dry.wire_bytes_per_gpu > warmup.wire_bytes_per_gpu);
    training.recipe.precision.weights =
        DataType::bf16;  // the wrapper of 0.19 makes the dry run in its constructor
    CHECK(distinct_steps(training).front().kind == StepKind::warmup);
  }
}

TEST_CASE("distinct steps: a run of one step is a warm-up step") {
  TrainingPlan training = training_of({});
  training.steps = 1;
  training.recipe.onebit.freeze_step = 0;
  CHECK(counts_of(training) == Counts{0, 1});
}

TEST_CASE("distinct steps: 0/1 Adam's policy replayed") {
  struct Row {
    std::int64_t steps, var_freeze_step, local_step_scaler;
    Counts expected;
  };
  // kappa 16, H 16. The rows are the bing_bert recipe, the tutorial's recipe, and a run that never
  // freezes. The counts of the last are worked out by hand: 16 updates at each of the 13 intervals
  // 1, 2, ..., 4096 are 208. The updates with interval 2^i are at its multiples from 2^(i+4) on, so
  // interval 8192 begins at step 131072 and has updates there, at 139264 and at 147456.
  const Row rows[] = {
      {150000, 12500, 32678, {0, 153, 74043, 75804}},
      {100000, 1000, 1000, {0, 96, 8717, 91187}},
      {150000, 1'000'000, 32678, {0, 211, 149789, 0}},
      // A run so short that every step is a full one.
      {16, 100000, 32678, {0, 16, 0, 0}},
      // Frozen as early as possible, at the end of the first step after the dry run. Then four
      // 1-bit synchronisations until the interval doubles; with interval 2, every second step is
      // silent.
      {8, 0, 4, {0, 1, 5, 2}},
  };
  for (const Row& row : rows) {
    TrainingPlan training = training_of({OptimizerType::zero_one_adam});
    training.steps = row.steps;
    training.recipe.onebit.var_freeze_step = row.var_freeze_step;
    training.recipe.onebit.local_step_scaler = row.local_step_scaler;
    const Counts counts = counts_of(training);
    INFO(row.steps << " steps: " << counts.warmup << " " << counts.compression << " "
                   << counts.silent);
    CHECK(counts == row.expected);
  }
}

// The policy of zoadam.py replayed step by step; the dry run was step 1.
ZeroOneSteps replayed(const OnebitSchedule& schedule, std::int64_t steps) {
  ZeroOneSteps counts;
  std::int64_t var_interval = 1, var_counter = 0, local_interval = 1, local_counter = 0;
  bool frozen = false;
  for (std::int64_t step = 2; step <= steps + 1; ++step) {
    if (!frozen) {
      const bool full = step % var_interval == 0;
      ++(full ? counts.full : counts.rounds);
      if (full && ++var_counter == schedule.var_update_scaler) {
        var_counter = 0;
        var_interval *= 2;
      }
      frozen = step > schedule.var_freeze_step;
      continue;
    }
    ++(step % local_interval == 0 ? counts.onebit : counts.silent);
    if (++local_counter == schedule.local_step_scaler) {
      local_counter = 0;
      local_interval = std::min(schedule.local_step_clipper, local_interval * 2);
    }
  }
  return counts;
}

TEST_CASE("distinct steps: 0/1 Adam's steps counted by intervals equal those of the replay") {
  OnebitSchedule schedule;
  for (const std::int64_t steps : {1, 2, 17, 100, 1023, 5000}) {
    for (const std::int64_t frozen : {0, 1, 5, 64, 1000, 100'000}) {
      for (const std::int64_t updates : {1, 2, 3, 16, 5000}) {
        for (const std::int64_t lasts : {1, 2, 7, 100, 32678}) {
          for (const std::int64_t most : {1, 2, 3, 16, 100, 1 << 20}) {
            schedule.var_freeze_step = frozen;
            schedule.var_update_scaler = updates;
            schedule.local_step_scaler = lasts;
            schedule.local_step_clipper = most;
            const ZeroOneSteps want = replayed(schedule, steps);
            const ZeroOneSteps got = zero_one_steps(schedule, steps);
            if (got.full != want.full || got.rounds != want.rounds || got.onebit != want.onebit ||
                got.silent != want.silent)
              FAIL(steps << " steps, frozen at " << frozen << ", " << updates << " updates, "
                         << lasts << " steps an interval up to " << most);
          }
        }
      }
    }
  }
}

TEST_CASE("distinct steps: an interval that doubles without limit leaves only silent steps") {
  TrainingPlan training = training_of({OptimizerType::zero_one_adam});
  training.steps = 1000;
  training.recipe.onebit.var_freeze_step = 0;
  training.recipe.onebit.local_step_scaler = 1;
  training.recipe.onebit.local_step_clipper = std::numeric_limits<std::int64_t>::max();
  // The dry run is step 1 and the first update step 2. Step s has interval 2^(s - 3), which divides
  // s only for s = 3 and 4.
  CHECK(counts_of(training) == Counts{0, 1, 2, 997});
}

TEST_CASE("distinct steps: a length curriculum splits steps and loses none") {
  TrainingPlan training = training_of({});
  training.recipe.onebit.freeze_step = 51;
  training.steps = 300;
  Curriculum curriculum;
  curriculum.min_difficulty = 32;
  curriculum.max_difficulty = 128;
  curriculum.total_step = 100;
  curriculum.difficulty_step = 32;
  training.recipe.curriculum = curriculum;
  CHECK(counts_of(training) == Counts{0, 50, 250});
  // Length at step t: t/100 * 96 + 32, rounded down to a multiple of 32, hence 64 from t = 34
  // (33.3), 96 from t = 67 and 128 from t = 100. The freeze after step 50 splits the phase of
  // length 64.
  const std::vector<DistinctStep> steps = distinct_steps(training);
  const std::vector<std::pair<std::int64_t, std::int64_t>> expected{
      {32, 33}, {64, 17}, {64, 16}, {96, 33}, {128, 201}};
  REQUIRE(steps.size() == expected.size());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    CHECK(steps[i].seq_len == expected[i].first);
    CHECK(steps[i].steps == expected[i].second);
    CHECK(steps[i].kind == (i < 2 ? StepKind::warmup : StepKind::compression));
  }
}

TEST_CASE("distinct steps: after a checkpoint a curriculum continues at its step") {
  TrainingPlan training = training_of({OptimizerType::lamb});
  Curriculum curriculum;
  curriculum.min_difficulty = 32;
  curriculum.max_difficulty = 128;
  curriculum.total_step = 100;
  curriculum.difficulty_step = 32;
  training.recipe.curriculum = curriculum;
  training.steps = 300;
  const auto phases = [&](std::int64_t done) {
    training.steps_done = done;
    return lengths_of(training);
  };
  CHECK(phases(0) == std::vector<SeqLenPhase>{{32, 33}, {64, 33}, {96, 33}, {128, 201}});
  CHECK(phases(33) == std::vector<SeqLenPhase>{{64, 33}, {96, 33}, {128, 234}});
  CHECK(phases(40) == std::vector<SeqLenPhase>{{64, 26}, {96, 33}, {128, 241}});
  CHECK(phases(1000) == std::vector<SeqLenPhase>{{128, 300}});
}

TEST_CASE(
    "distinct steps: a batch ramp splits steps, continues after a checkpoint and counts its "
    "samples") {
  TrainingPlan training = training_of({OptimizerType::lamb});  // 8 GPUs x 16 samples
  training.batch = {512, 16, 4};
  training.ramp = BatchRamp{128, 128, 3840};  // 1,280 samples at each of 128, 256, 384
  training.steps = 100;
  const auto shapes = [&] {
    std::vector<std::pair<std::int64_t, std::int64_t>> found;
    for (const DistinctStep& step : distinct_steps(training))
      found.emplace_back(step.gas, step.steps);
    return found;
  };
  using Shapes = std::vector<std::pair<std::int64_t, std::int64_t>>;
  CHECK(shapes() == Shapes{{1, 10}, {2, 5}, {3, 4}, {4, 81}});
  CHECK(samples_of(training) == 1280 + 1280 + 1536 + 81 * 512);
  training.steps_done = 12;
  CHECK(shapes() == Shapes{{2, 3}, {3, 4}, {4, 93}});
  CHECK(samples_of(training) == 768 + 1536 + 93 * 512);
  training.steps_done = 0;
  training.recipe.optimizer = OptimizerType::onebit_lamb;
  training.recipe.onebit.freeze_step = 13;
  CHECK(shapes() == Shapes{{1, 10}, {2, 2}, {2, 3}, {3, 4}, {4, 81}});
}

}  // namespace
}  // namespace lambcast
