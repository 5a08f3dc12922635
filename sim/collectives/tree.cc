// The double binary tree of NCCL (double_tree.h). Each tree reduces and broadcasts half of the
// data. Inside a node the ranks form a chain that starts at the rank next to the NIC, or the NVLink
// switch reduces (NVLS, NVLSTree).
#include <map>
#include <memory>

#include "sim/collectives/builders.h"
#include "sim/collectives/double_tree.h"

namespace lambcast::builders {
namespace {

int floor_log2(int value) {
  int log = 0;
  while (value >>= 1) ++log;
  return log;
}

// Positions of the trees' nodes in the written machine. They are unchanged or, if the machine is
// folded, those of the busiest parts in sequence.
class Written {
 public:
  explicit Written(const Placement& placement) : placement_(placement) {
    if (!placement.folded) return;
    busiest_ = busiest_parts(placement.nodes(), placement.part, placement.uplinks);
    for (const int part : busiest_->parts)
      first_.try_emplace(part, static_cast<int>(first_.size()) * placement.part);
  }

  // Returns the edges of which at least one half is written.
  std::vector<TreeEdge> edges() const {
    return busiest_ != nullptr ? busiest_->edges : edges_of_both_trees(placement_.nodes());
  }

  // Calls take(from, to) for a send as it is written. A send between two parts has two halves, each
  // with one end at a node that is not written, at the position of the other end in its part.
  template <typename Take>
  void each(int from, int to, const Take& take) const {
    if (!placement_.folded) return take(from, to);
    const int part = placement_.part;
    const auto source = first_.find(from / part), target = first_.find(to / part);
    const int out = from % part, in = to % part;
    if (source != first_.end() && source == target)
      return take(source->second + out, source->second + in);
    if (from / part == to / part) return;
    if (source != first_.end()) take(source->second + out, placement_.written + in);
    if (target != first_.end()) take(placement_.written + out, target->second + in);
  }

 private:
  const Placement& placement_;
  std::shared_ptr<const BusiestParts> busiest_;  // null if all nodes are written
  std::map<int, int> first_;                     // first written node of each part
};

// Adds the sends of both trees over the nodes, a pair of trees per rail, with sends in both
// directions of every edge. Adds nothing on one node.
void between_nodes(std::vector<Send>& sends, Bytes size, const Placement& placement) {
  const int nodes = placement.nodes();
  if (nodes == 1) return;
  const int lanes = rails(placement);
  const auto cross = [&](int from, int to) {
    for (int rail = 0; rail < lanes; ++rail) {
      sends.push_back(
          {from * placement.per_node + rank_near_nic(rail, lanes, placement.ranks_on(from)),
           to * placement.per_node + rank_near_nic(rail, lanes, placement.ranks_on(to)),
           size / 2 / lanes, rail});
    }
  };
  const Written written(placement);
  for (const TreeEdge& edge : written.edges()) {
    written.each(edge.child, edge.parent, cross);
    written.each(edge.parent, edge.child, cross);
  }
}

// Returns the traffic per node, averaged over the whole tree, since the folded nodes are the
// busiest. Each edge of the two trees carries half of S each way.
Bytes network_traffic(Bytes size, int nodes) { return size * (2.0 * (nodes - 1) / nodes); }

// Adds the sends of a reduction in the switch, which reads S from every rank and sends each its
// share of the sum; every rank sends its share back and gets the whole: S (1 + 1/p) each way. The
// switch is written as sends to neighbours.
Bytes through_switch(std::vector<Send>& sends, Bytes size, const Placement& placement) {
  const int local = placement.per_node;
  const Bytes each = size * (1 + 1.0 / local);
  for (int rank = 0; rank < placement.senders() && local > 1; ++rank) {
    const int first = placement.node_of(rank) * local;
    sends.push_back({rank, first + (rank - first + 1) % local, each});
  }
  return each;
}

}  // namespace

void add_chain(std::vector<Send>& sends, int node, Bytes size, const Placement& placement) {
  const int first = node * placement.per_node;
  const int ranks = placement.ranks_on(node);
  const int chains = rails(placement);
  if (ranks == 1) return;
  // A chain that ends at a rank does not pass on to the next rank, which is its head.
  std::vector<int> passing(static_cast<std::size_t>(ranks), chains);
  for (int rail = 0; rail < chains; ++rail)
    --passing[static_cast<std::size_t>((rank_near_nic(rail, chains, ranks) + ranks - 1) % ranks)];
  for (int i = 0; i < ranks; ++i) {
    const int merged = passing[static_cast<std::size_t>(i)];
    if (merged == 0) continue;
    const int near = first + i, far = first + (i + 1) % ranks;
    const Bytes bytes = size / chains * merged;
    const auto weight = static_cast<std::uint32_t>(merged);
    sends.push_back({near, far, bytes, Send::own_rail, weight});
    sends.push_back({far, near, bytes, Send::own_rail, weight});
  }
}

void tree(CommSchedule& schedule, Bytes size, const Placement& placement) {
  const int nodes = placement.nodes();
  std::vector<Send> sends;
  between_nodes(sends, size, placement);
  for (int node = 0; node < placement.written; ++node) add_chain(sends, node, size, placement);
  schedule.latencies = Latencies::tree;
  schedule.halves = true;
  schedule.rounds.push_back({add_sends(schedule, std::move(sends)), 1, 2 * (placement.per_node - 1),
                             2 * floor_log2(nodes), 0, Pace::streaming, size / 2 / rails(placement),
                             size});
  const Bytes network = network_traffic(size, nodes);
  const Bytes local = size * (2.0 * (placement.ranks - nodes) / nodes);
  schedule.traffic = {(network + local) * (static_cast<double>(nodes) / placement.ranks), network};
}

void in_switch(CommSchedule& schedule, Bytes size, const Placement& placement) {
  std::vector<Send> sends;
  const bool several = placement.nodes() > 1;
  if (several) add_in_network(sends, size, placement);
  through_switch(sends, size, placement);
  schedule.latencies = Latencies::in_switch;
  // NCCL's own model: 18 us through the network and back; a hop of NVLSTree takes 20.9 us.
  schedule.rounds.push_back({add_sends(schedule, std::move(sends)), 1, 2, several ? 1 : 0, 0,
                             Pace::streaming, size / placement.per_node});
}

void in_switch_tree(CommSchedule& schedule, Bytes size, const Placement& placement) {
  const int nodes = placement.nodes();
  const int local = placement.per_node;
  std::vector<Send> sends;
  between_nodes(sends, size, placement);
  const Bytes inside = through_switch(sends, size, placement);
  schedule.latencies = Latencies::in_switch;
  schedule.halves = true;
  schedule.rounds.push_back({add_sends(schedule, std::move(sends)), 1, 2, 2 * floor_log2(nodes), 0,
                             Pace::streaming, size / local});
  const Bytes network = network_traffic(size, nodes);
  schedule.traffic = {inside + network / local, network};
}

}  // namespace lambcast::builders
