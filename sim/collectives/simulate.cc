// Simulates a single collective on a network model, event by event.
#include <algorithm>

#include "sim/collectives/collective.h"
#include "sim/engine/engine.h"
#include "sim/network/fair_share.h"

namespace lambcast {

bool shares_are_unlike(const Collective& collective) {
  const std::vector<CommPhase>& phases = collective.program->phases;
  return std::any_of(phases.begin(), phases.end(), [&](const CommPhase& phase) {
    return phase.flows->size() > 0 && !last_flow(*phase.flows, *collective.topology).max_min;
  });
}

std::optional<Approximation> approximation_of(const Collective& collective, NetworkModel model) {
  if (collective.approximation || model == NetworkModel::analytic || !collective.counts_links ||
      !shares_are_unlike(collective))
    return collective.approximation;
  // Bounds of the time: max-min rates are never below the shares, and a link moves all its bytes.
  double least = 0, most = 0;
  for (const Flow& flow : collective.program->phases.front().flows->flows) {
    const double bytes = flow.bytes.value() / flow.weight;
    least = least == 0 ? bytes : std::min(least, bytes);
    most = std::max(most, bytes);
  }
  return Approximation{{}, 1, least / most, 1};
}

Duration simulate(const Collective& collective, NetworkModel model) {
  const std::optional<Approximation> by = approximation_of(collective, model);
  if (by && collective.counts_links) return collective.time;
  TaskGraph graph;
  const ResourceId stream = graph.add_resource("communication");
  graph.add_communication(collective.algorithm, Category::gradient_comm, stream,
                          collective.program.get());
  const auto network = make_network(model, *collective.topology);
  const Duration time = run(graph, *network).end.since_start();
  return by ? time.scaled(by->scale) : time;
}

}  // namespace lambcast
