#include "models/training/run/account.h"

#include <algorithm>
#include <numeric>

#include "models/training/price/nic_sharing.h"

namespace lambcast {
namespace {

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

// Returns the coverage of two parts together: none if one of them has none, else the smaller one.
std::optional<double> weaker(std::optional<double> a, std::optional<double> b) {
  if (!a || !b) return std::nullopt;
  return std::min(*a, *b);
}

}  // namespace

StepMetrics account(const StepPlan& plan, const std::vector<Price>& prices,
                    const Execution& execution) {
  const Timeline& timeline = execution.timeline;
  StepMetrics metrics;
  metrics.coverage = 1;
  metrics.basis = Basis::this_machine;
  Duration bubbles;  // sum over all stages
  const double classes = plan.rank_classes;
  const auto mean = [&](Duration sum) { return classes == 1 ? sum : sum.scaled(1 / classes); };
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const Price& price = prices[i];
    if (!std::holds_alternative<StageWork>(plan.ops[i].work)) {
      const Duration took = timeline.spans[i].end - timeline.spans[i].begin;
      part_of(metrics, plan.ops[i].part) += mean(took - took.scaled(price.waits_for_nics));
    }
    if (price.passes) {
      metrics.forward += mean(price.passes->forward);
      metrics.backward += mean(price.passes->backward);
      metrics.gradient_comm += mean(price.passes->communication);
      bubbles += price.passes->bubble;
    }
    if (!execution.waits.empty()) bubbles += execution.waits[i];
    metrics.coverage = weaker(metrics.coverage, price.coverage);
    metrics.calibrated &= price.calibrated;
    metrics.basis = std::max(metrics.basis, price.basis);
    metrics.wire_bytes_per_gpu += price.wire_bytes_per_gpu * (1 / classes);
    metrics.num_collectives += price.num_collectives / classes;
  }
  const std::vector<Bytes> nodes = bytes_by_node(plan, prices);
  metrics.network_bytes_per_node = std::accumulate(nodes.begin(), nodes.end(), Bytes()) *
                                   (1.0 / static_cast<double>(nodes.size()));
  metrics.bubble += mean(std::max(Duration(), bubbles));
  metrics.step_time = timeline.end.since_start();
  if (plan.pipeline) {
    // Stages run at the same time, so exposed communication is the part of the step in which the
    // mean stage neither computes nor waits for others. If the result is negative, some stages
    // compute while others wait for communication, so it is subtracted from the bubble.
    metrics.exposed_comm = metrics.step_time - metrics.forward - metrics.backward -
                           metrics.compress - metrics.decompress - metrics.optimizer -
                           metrics.bubble;
    if (metrics.exposed_comm < Duration()) {
      metrics.bubble += metrics.exposed_comm;
      metrics.exposed_comm = Duration();
    }
  } else {
    metrics.exposed_comm = exposed_time(execution.graph, timeline, {Category::gradient_comm},
                                        {Category::forward, Category::backward, Category::compress,
                                         Category::decompress, Category::optimizer});
  }
  metrics.stand_in = execution.stand_in;
  metrics.step_time_low = execution.interval.low;
  metrics.step_time_high = execution.interval.high;
  return metrics;
}

}  // namespace lambcast
