#include "models/training/price/stretches.h"

#include <catch2/catch.hpp>

namespace lambcast {
namespace {

Duration milliseconds(double time) { return Duration::seconds(time * 1e-3); }

// Plan of `stages` equal stages and `micro_batches` micro batches.
PipelinePlan even_plan(int stages, int micro_batches) {
  PipelinePlan plan;
  plan.pipeline = {parallel::PipelineSchedule::one_f_one_b, stages, 1, micro_batches};
  plan.transfers = parallel::Transfers::overlapped;
  return plan;
}

PipelinePrice priced(const PipelinePlan& plan) {
  PipelinePrice price;
  ChunkPrice chunk;
  chunk.forward.compute = milliseconds(1);
  chunk.input_gradient.compute = chunk.weight_gradient.compute = milliseconds(1);
  price.chunks.assign(static_cast<std::size_t>(plan.pipeline.positions()), chunk);
  const std::vector<parallel::ChunkTimes> times(price.chunks.size(), chunk.times());
  price.time = parallel::pipeline_time(plan.pipeline, times, plan.transfers);
  return price;
}

TEST_CASE("stretches: segments follow one another from the start of the step to the stage's end") {
  const PipelinePlan plan = even_plan(4, 8);
  const PipelinePrice price = priced(plan);
  for (int stage = 0; stage < 4; ++stage) {
    CHECK(stretch_end(plan, price, {stage, 0}) == milliseconds(stage + 1));
    Duration sum;
    for (int segment = 0; segment <= 2; ++segment)
      sum += stretch_time(plan, price, {stage, segment});
    CHECK(sum == stretches_time(plan, price, stage));
    CHECK(sum == price.time.stages[static_cast<std::size_t>(stage)].last_end);
  }
}

// m + p - 1 passes of all stages follow one another, and each takes e / m longer.
TEST_CASE("stretches: stages that are all longer by e end e (m + p - 1) / m later") {
  const PipelinePlan plan = even_plan(4, 8);
  const PipelinePrice price = priced(plan);
  const PipelinePrice longer = replayed(plan, price, std::vector<Duration>(4, milliseconds(8)));
  CHECK(price.time.makespan == milliseconds(3 * 11));
  CHECK(longer.time.makespan.s() == Approx(0.033 + 0.008 * 11 / 8));
}

TEST_CASE("stretches: one longer stage makes all others wait for it") {
  const PipelinePlan plan = even_plan(4, 8);
  const PipelinePrice price = priced(plan);
  const PipelinePrice longer =
      replayed(plan, price, {Duration(), Duration(), Duration(), milliseconds(8)});
  CHECK(longer.time.stages[3].busy.s() == Approx(price.time.stages[3].busy.s() + 0.008));
  CHECK(longer.time.makespan.s() == Approx(0.033 + 0.008));
  CHECK(longer.time.stages[0].busy == price.time.stages[0].busy);
  CHECK(longer.time.stages[0].idle().s() == Approx(price.time.stages[0].idle().s() + 0.008));
}

}  // namespace
}  // namespace lambcast
