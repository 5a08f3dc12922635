#include "models/training/price/stretches.h"

#include <algorithm>

namespace lambcast {

Duration stretch_end(const PipelinePlan& plan, const PipelinePrice& price, const StageWork& work) {
  const parallel::Pipeline& pipeline = plan.pipeline;
  const parallel::StageTime& of = price.time.stages[static_cast<std::size_t>(work.stage)];
  const Duration start = plan.synchronised ? Duration() : of.first_start;
  const Duration end = of.last_end - start;
  if (work.segment > pipeline.chunks) return end;
  Duration first = of.first_start - start;
  for (int chunk = 0; chunk < pipeline.chunks; ++chunk)
    first +=
        price.chunks[static_cast<std::size_t>(pipeline.position(work.stage, chunk))].forward.time();
  Duration at = std::min(first, end);
  for (int i = 0; i < work.segment; ++i) {
    const parallel::SlotTime& slot =
        of.last_gradient[static_cast<std::size_t>(pipeline.chunks - 1 - i)];
    const Duration ready = slot.start + (slot.end - slot.start).scaled(plan.first_bucket) - start;
    at = std::max(at, std::min(ready, end));
  }
  return at;
}

Duration stretch_time(const PipelinePlan& plan, const PipelinePrice& price, const StageWork& work) {
  const Duration end = stretch_end(plan, price, work);
  return work.segment == 0 ? end : end - stretch_end(plan, price, {work.stage, work.segment - 1});
}

Duration stretches_time(const PipelinePlan& plan, const PipelinePrice& price, int stage) {
  return stretch_end(plan, price, {stage, plan.pipeline.chunks + 1});
}

PassesBeside passes_beside(const PipelinePlan& plan, const PipelinePrice& price, int stage,
                           bool first_only) {
  const auto end = [&](int segment) { return stretch_end(plan, price, {stage, segment}); };
  const Duration all =
      (first_only ? price.forward : price.backward)[static_cast<std::size_t>(stage)];
  return {all.scaled(1.0 / plan.pipeline.micro_batches),
          first_only ? end(0) : end(plan.pipeline.chunks + 1) - end(1)};
}

PipelinePrice replayed(const PipelinePlan& plan, PipelinePrice price,
                       const std::vector<Duration>& longer) {
  const parallel::Pipeline& pipeline = plan.pipeline;
  std::vector<parallel::ChunkTimes> times;
  for (int position = 0; position < pipeline.positions(); ++position) {
    const auto stage = static_cast<std::size_t>(pipeline.stage_at(position));
    const parallel::StageTime& of = price.time.stages[stage];
    const double factor = 1 + longer[stage] / of.busy;
    ChunkPrice& chunk = price.chunks[static_cast<std::size_t>(position)];
    for (PassPrice* pass : {&chunk.forward, &chunk.input_gradient, &chunk.weight_gradient})
      pass->exposed += pass->time().scaled(factor - 1);
    times.push_back(chunk.times());
  }
  price.time = parallel::pipeline_time(pipeline, times, plan.transfers);
  return price;
}

}  // namespace lambcast
