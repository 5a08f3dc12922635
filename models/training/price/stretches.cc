#include "models/training/price/stretches.h"

#include <algorithm>

namespace lambcast {
namespace {

// Chunks times micro batches of the longest pipeline whose kinds of collectives err apart: each
// kind takes two replays.
constexpr double most_replayed_apart = 1e6;

}  // namespace

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

PassesAtEnds::PassesAtEnds(const PipelinePlan& plan, Intervals intervals, const PriceAt& price_at,
                           const std::function<CallError(const Call&)>& error_of)
    : plan_(&plan) {
  at_.front() = price_at(End::expected, std::nullopt);
  if (intervals == Intervals::left_out) return;
  for (const End end : all_ends)
    if (end != End::expected) at_[static_cast<std::size_t>(end)] = price_at(end, std::nullopt);
  for (const std::vector<CallsMade>& of_chunk : expected().calls)
    for (const CallsMade& made : of_chunk) {
      const CallError error = error_of(*made.call);
      const double width_s = error.width.s() * static_cast<double>(made.times);
      if (!(width_s > 0)) continue;
      auto of = std::ranges::find(kinds_, call_kind(*made.call), &OfKind::kind);
      if (of == kinds_.end()) of = kinds_.insert(of, {call_kind(*made.call), 0, 0, {}, {}});
      of->width_s += width_s;
      of->c += (error.c - of->c) * width_s / of->width_s;
    }
  const double passes =
      static_cast<double>(plan.pipeline.positions()) * plan.pipeline.micro_batches;
  if (kinds_.size() > 1 && passes > most_replayed_apart)
    kinds_ = {std::ranges::max(kinds_, {}, &OfKind::width_s)};
  if (kinds_.size() == 1) return;
  for (OfKind& of : kinds_) {
    of.low = price_at(End::wires_low, of.kind);
    of.high = price_at(End::wires_high, of.kind);
  }
}

void PassesAtEnds::set_intervals(const StageWork& work, Price& price) const {
  const auto between = [&](const PipelinePrice& low, const PipelinePrice& high) {
    return Interval{stretch_time(*plan_, low, work), stretch_time(*plan_, high, work)};
  };
  const auto at = [&](End end) -> const PipelinePrice& {
    return at_[static_cast<std::size_t>(end)];
  };
  price.wires = between(at(End::wires_low), at(End::wires_high));
  price.compute = between(at(End::compute_low), at(End::compute_high));
  for (const OfKind& of : kinds_)
    price.wires_by_kind.push_back(
        {of.kind, kinds_.size() == 1 ? price.wires : between(of.low, of.high), of.c});
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
