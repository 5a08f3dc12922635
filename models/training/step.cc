#include "models/training/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace lambcast {
namespace {

// A task for each operation, of the same number; collectives come with their time.
TaskGraph graph_of(const StepPlan& plan, const std::vector<Price>& prices) {
  TaskGraph graph;
  std::vector<ResourceId> compute, wire;
  for (int c = 0; c < plan.rank_classes; ++c) {
    const std::string of = plan.rank_classes == 1 ? "" : fmt::format(" of stage {}", c);
    compute.push_back(graph.add_resource(std::string(name_of(Stream::compute)) + of));
    wire.push_back(graph.add_resource(std::string(name_of(Stream::communication)) + of));
  }
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const PlanOp& op = plan.ops[i];
    const auto& of_class = op.stream == Stream::compute ? compute : wire;
    graph.add_compute(op.name, op.part, of_class[static_cast<std::size_t>(op.rank_class)],
                      prices[i].time, op.after);
  }
  return graph;
}

Duration& part_of(StepMetrics& metrics, Category category) {
  switch (category) {
    case Category::forward:
      return metrics.forward;
    case Category::backward:
      return metrics.backward;
    case Category::gradient_comm:
      return metrics.gradient_comm;
    case Category::compress:
      return metrics.compress;
    case Category::decompress:
      return metrics.decompress;
    case Category::optimizer:
      return metrics.optimizer;
    case Category::bubble:
      break;
  }
  return metrics.bubble;
}

Duration together(Duration communication, Duration compute) {
  return Duration::seconds(std::hypot(communication.s(), compute.s()));
}

// Of the whole: none where one part has none, else the least.
std::optional<double> weaker(std::optional<double> a, std::optional<double> b) {
  if (!a || !b) return std::nullopt;
  return std::min(*a, *b);
}

}  // namespace

StepMetrics account(const StepPlan& plan, const std::vector<Price>& prices, const TaskGraph& graph,
                    const Timeline& timeline) {
  StepMetrics metrics;
  metrics.coverage = 1;
  metrics.basis = Basis::this_machine;
  const double classes = plan.rank_classes;
  const auto mean = [&](Duration sum) { return classes == 1 ? sum : sum.scaled(1 / classes); };
  Duration shorter, longer, compute_shorter, compute_longer;
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const Price& price = prices[i];
    const bool call = std::holds_alternative<Call>(plan.ops[i].work);
    if (!std::holds_alternative<StageWork>(plan.ops[i].work))
      part_of(metrics, plan.ops[i].part) += mean(timeline.spans[i].end - timeline.spans[i].begin);
    if (price.passes) {
      metrics.forward += mean(price.passes->forward);
      metrics.backward += mean(price.passes->backward);
      metrics.gradient_comm += mean(price.passes->communication);
      metrics.bubble += mean(price.passes->bubble);
    }
    (call ? shorter : compute_shorter) += mean(price.shorter);
    (call ? longer : compute_longer) += mean(price.longer);
    metrics.coverage = weaker(metrics.coverage, price.coverage);
    metrics.calibrated &= price.calibrated;
    metrics.basis = std::max(metrics.basis, price.basis);
    metrics.wire_bytes_per_gpu += price.wire_bytes_per_gpu * (1 / classes);
    metrics.network_bytes_per_node += price.network_bytes_per_node * (1 / classes);
    metrics.num_collectives += price.num_collectives / classes;
  }
  metrics.step_time = timeline.end.since_start();
  if (plan.pipeline) {
    // Ranks of several stages run at once: what is left of the step when they neither compute nor
    // wait for one another. Where nothing is, some stages compute while others wait for theirs.
    metrics.exposed_comm = metrics.step_time - metrics.forward - metrics.backward -
                           metrics.compress - metrics.decompress - metrics.optimizer -
                           metrics.bubble;
    if (metrics.exposed_comm < Duration()) {
      metrics.bubble += metrics.exposed_comm;
      metrics.exposed_comm = Duration();
    }
  } else {
    metrics.exposed_comm = exposed_time(graph, timeline, {Category::gradient_comm},
                                        {Category::forward, Category::backward, Category::compress,
                                         Category::decompress, Category::optimizer});
  }
  // What hides behind the backward pass shortens no step; longer it may show.
  metrics.step_time_low =
      metrics.step_time - together(std::min(shorter, metrics.exposed_comm), compute_shorter);
  metrics.step_time_high = metrics.step_time + together(longer, compute_longer);
  return metrics;
}

Duration step_time(const StepPlan& plan, const std::vector<Price>& prices) {
  const Topology none;
  return run(graph_of(plan, prices), *make_network(NetworkModel::analytic, none)).end.since_start();
}

StepRun run_step(const TrainingPlan& training, const Stage& stage, CollectiveCosts& costs) {
  StepRun step;
  step.plan = plan_step(training, stage);
  step.prices = price(step.plan, training, costs);
  step.graph = graph_of(step.plan, step.prices);
  const Topology none;
  step.timeline = run(step.graph, *make_network(NetworkModel::analytic, none));
  step.metrics = account(step.plan, step.prices, step.graph, step.timeline);
  return step;
}

}  // namespace lambcast
