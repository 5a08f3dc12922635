// The double binary tree of NCCL (src/graph/trees.cc): nodes form a binary tree in which leaves and
// inner nodes alternate, and a second tree, mirrored or shifted by one, in which the roles are
// swapped. Each tree reduces and broadcasts half of the data. Inside a node the ranks form a chain
// that hangs from the rank next to the NIC, or the NVLink switch reduces (NVLS, NVLSTree).
#include "sim/collectives/builders.h"

namespace lambcast::builders {
namespace {

// The parent of `node` in the first tree over `nodes`, -1 for the root.
int parent(int node, int nodes) {
  if (node == 0) return -1;
  const int bit = node & -node;
  const int up = (node ^ bit) | (bit << 1);
  return up < nodes ? up : node ^ bit;
}

struct Edge {
  int child;
  int parent;
};

std::vector<Edge> edges_of_both_trees(int nodes) {
  std::vector<Edge> edges;
  for (int node = 1; node < nodes; ++node) {
    const int up = parent(node, nodes);
    edges.push_back({node, up});
    if (nodes % 2 == 0)
      edges.push_back({nodes - 1 - node, nodes - 1 - up});
    else
      edges.push_back({(node + 1) % nodes, (up + 1) % nodes});
  }
  return edges;
}

// The node that most edges meet, which paces the whole tree.
int busiest_node(const std::vector<Edge>& edges, int nodes) {
  std::vector<int> degree(static_cast<std::size_t>(nodes));
  for (const Edge& edge : edges) {
    ++degree[static_cast<std::size_t>(edge.child)];
    ++degree[static_cast<std::size_t>(edge.parent)];
  }
  return static_cast<int>(std::max_element(degree.begin(), degree.end()) - degree.begin());
}

int floor_log2(int value) {
  int log = 0;
  while (value >>= 1) ++log;
  return log;
}

// Both trees over the nodes, one pair per rail, every edge both ways; nothing on one node.
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
  const std::vector<Edge> edges = edges_of_both_trees(nodes);
  if (placement.folded) {
    // The busiest node stands for all, written as node 0; it sends and receives once per edge.
    const int busiest = busiest_node(edges, nodes);
    for (const Edge& edge : edges)
      if (edge.child == busiest || edge.parent == busiest) cross(0, 1);
    return;
  }
  for (const Edge& edge : edges) {
    cross(edge.child, edge.parent);
    cross(edge.parent, edge.child);
  }
}

// Per node, counted over the whole tree: the folded node is the busiest one, not the mean. Each
// edge of the tree pair carries half of S, both ways, in both trees.
Bytes network_traffic(Bytes size, int nodes) { return size * (2.0 * (nodes - 1) / nodes); }

// The switch reads S from every rank and hands each its share of the sum; every rank sends its
// share back and gets the whole: S (1 + 1/p) each way. Neighbours stand for the switch.
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
  for (int rail = 0; rail < chains; ++rail) {
    const int head = rank_near_nic(rail, chains, ranks);
    for (int i = 0; i + 1 < ranks; ++i) {
      const int near = first + (head + i) % ranks;
      const int far = first + (head + i + 1) % ranks;
      sends.push_back({near, far, size / chains});
      sends.push_back({far, near, size / chains});
    }
  }
}

void tree(CommSchedule& schedule, Bytes size, const Placement& placement) {
  const int nodes = placement.nodes();
  std::vector<Send> sends;
  between_nodes(sends, size, placement);
  for (int node = 0; node < placement.written; ++node) add_chain(sends, node, size, placement);
  schedule.latencies = Latencies::tree;
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
  // NCCL's own model: 18 us through the network and back, where a hop of NVLSTree has 20.9.
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
  schedule.rounds.push_back({add_sends(schedule, std::move(sends)), 1, 2, 2 * floor_log2(nodes), 0,
                             Pace::streaming, size / local});
  const Bytes network = network_traffic(size, nodes);
  schedule.traffic = {inside + network / local, network};
}

}  // namespace lambcast::builders
