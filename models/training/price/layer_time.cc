#include "models/training/price/layer_time.h"

#include <array>

#include "models/training/plan/distinct_steps.h"
#include "models/training/plan/step_plan.h"
#include "models/training/price/measured_program.h"
#include "models/training/price/pass_price.h"

namespace lambcast {
namespace {

using AtEnds = std::array<Duration, all_ends.size()>;

Interval interval(const AtEnds& at) {
  const auto of = [&](End end) { return at[static_cast<std::size_t>(end)]; };
  return interval_of(of(End::expected), {of(End::wires_low), of(End::wires_high)},
                     {of(End::compute_low), of(End::compute_high)});
}

}  // namespace

std::optional<LayerTime> layer_time(const TrainingPlan& training, CollectiveCosts& costs) {
  if (!training.parallelism) return std::nullopt;
  const StepPlan plan = plan_step(training, distinct_steps(training).front());
  const PipelinePlan& passes = *plan.pipeline;
  const double width = width_of_passes(training).log;
  const double blocks = passes.chunks.front().layers;
  AtEnds forward, backward;
  for (const End end : all_ends) {
    const PipelinePrice price = price_pipeline(passes, training, costs, end, width);
    const ChunkPrice& chunk = price.chunks.front();
    forward[static_cast<std::size_t>(end)] = chunk.blocks_forward.scaled(1 / blocks);
    backward[static_cast<std::size_t>(end)] = chunk.blocks_backward.scaled(1 / blocks);
  }
  return LayerTime{forward.front(), backward.front(), interval(forward), interval(backward)};
}

}  // namespace lambcast
