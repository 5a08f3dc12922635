#include "models/training/run/execute.h"

#include <fmt/format.h>

#include "models/training/price/nic_sharing.h"

namespace lambcast {

TaskGraph graph_of(const StepPlan& plan, const std::vector<Price>& prices, End end,
                   const std::vector<std::shared_ptr<const CommProgram>>& programs,
                   const std::vector<Duration>& waits) {
  TaskGraph graph;
  graph.reserve(plan.ops.size());
  std::vector<ResourceId> compute, wire;
  for (int c = 0; c < plan.rank_classes; ++c) {
    const std::string of = plan.rank_classes == 1 ? "" : fmt::format(" of stage {}", c);
    compute.push_back(graph.add_resource(std::string(name_of(Stream::compute)) + of));
    wire.push_back(graph.add_resource(std::string(name_of(Stream::communication)) + of));
  }
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const PlanOp& op = plan.ops[i];
    const auto& of_class = op.stream == Stream::compute ? compute : wire;
    const ResourceId stream = of_class[static_cast<std::size_t>(op.rank_class)];
    if (!programs.empty() && programs[i] != nullptr)
      graph.add_communication(op.name, op.part, stream, programs[i].get(), op.after);
    else
      graph.add_compute(op.name, op.part, stream,
                        prices[i].at(end) + (waits.empty() ? Duration() : waits[i]), op.after);
  }
  return graph;
}

void run_at_ends(Execution& execution, Intervals intervals, Duration least,
                 const std::function<Timeline(End)>& run_at) {
  const auto lasts = [&](End end) { return std::max(least, run_at(end).end.since_start()); };
  Interval wires, compute;
  if (intervals == Intervals::found) {
    wires = {lasts(End::wires_low), lasts(End::wires_high)};
    compute = {lasts(End::compute_low), lasts(End::compute_high)};
  }
  execution.timeline = run_at(End::expected);
  execution.timeline.end = std::max(execution.timeline.end, SimTime() + least);
  const Duration expected = execution.timeline.end.since_start();
  execution.interval = intervals == Intervals::found ? interval_of(expected, wires, compute, least)
                                                     : Interval{expected, expected};
}

StepInStreams::StepInStreams(const StepPlan& plan, std::vector<Price> prices)
    : plan_(plan), prices_(std::move(prices)), least_(least_on_nics(plan, prices_)) {
  if (!NicSharing(plan, prices_).any()) graph_ = graph_of(plan, prices_, End::expected);
}

void StepInStreams::set(OpId op, Duration time) {
  prices_[op].time = time;
  if (graph_) graph_->set_duration(op, time);
}

Duration StepInStreams::lasts() const {
  if (!graph_) return execute(plan_, prices_, Intervals::left_out).timeline.end.since_start();
  const Topology no_links;
  const auto network = make_network(NetworkModel::analytic, no_links);
  return std::max(least_, run(*graph_, *network).end.since_start());
}

Duration time_without_contention(const StepPlan& plan, const std::vector<Price>& prices) {
  const Topology no_links;
  const auto network = make_network(NetworkModel::analytic, no_links);
  const TaskGraph graph = graph_of(plan, prices, End::expected);
  return std::max(least_on_nics(plan, prices), run(graph, *network).end.since_start());
}

bool in_a_row(const Timeline& timeline) {
  for (std::size_t i = 1; i < timeline.spans.size(); ++i)
    if (timeline.spans[i].begin != timeline.spans[i - 1].end) return false;
  return true;
}

Execution execute(const StepPlan& plan, const std::vector<Price>& prices, Intervals intervals) {
  Execution execution;
  const NicSharing nics(plan, prices);
  const Duration least = least_on_nics(plan, prices);
  const NetworkModel model = nics.any() ? NetworkModel::flow : NetworkModel::analytic;
  const auto run_at = [&](End end) {
    if (nics.any()) execution.programs = nics.programs(end);
    if (nics.any() || execution.graph.tasks().empty())
      execution.graph = graph_of(plan, prices, end, execution.programs);
    else
      for (OpId op = 0; op < prices.size(); ++op)
        execution.graph.set_duration(op, prices[op].at(end));
    return run(execution.graph, *make_network(model, nics.topology()));
  };
  run_at_ends(execution, Intervals::left_out, least, run_at);
  if (intervals == Intervals::left_out) return execution;
  if (!in_a_row(execution.timeline)) {
    run_at_ends(execution, intervals, least, run_at);
    return execution;
  }
  const Duration expected = execution.timeline.end.since_start();
  // Operations in a row need no further run: the step lasts as long as all of them together.
  const auto lasts = [&](End end) {
    Duration sum;
    for (const Price& price : prices) sum += price.at(end);
    return sum;
  };
  execution.interval = interval_of(expected, {lasts(End::wires_low), lasts(End::wires_high)},
                                   {lasts(End::compute_low), lasts(End::compute_high)}, least);
  return execution;
}

}  // namespace lambcast
