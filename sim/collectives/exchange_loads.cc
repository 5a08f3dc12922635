#include "sim/collectives/exchange_loads.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "sim/collectives/placement.h"

namespace lambcast {
namespace {

using Tally = std::vector<double>;
using Grid = std::vector<Tally>;

class LinkCounts {
 public:
  LinkCounts(const ProcessGroup& group, const Machine& machine, Endpoint endpoint, Router& router,
             bool by_rail_of_receiver)
      : group_(group),
        machine_(machine),
        ends_(endpoint == Endpoint::gpu ? machine.gpu : machine.host),
        router_(router),
        by_receiver_(by_rail_of_receiver),
        nics_(static_cast<std::size_t>(machine.nics_per_node)),
        siblings_(static_cast<std::size_t>(group.siblings)),
        full_(node_of(group.ranks_on(0))),
        last_(node_of(group.ranks_on(group.nodes() - 1))) {}

  ExchangeLoads most() {
    inside(full_);
    if (!group_.uniform()) inside(last_);
    between_leaves();
    return most_;
  }

 private:
  // A node with a given number of members of each sibling.
  struct Node {
    int ranks;
    Grid next_to;  // number of members, by sibling and NIC
  };
  struct Load {
    double messages = 0;
    bool local = false, crossing = false;
  };
  struct Leaf {
    VertexId at;
    Tally up, down;  // number of messages, by spine
  };

  Node node_of(int ranks) const {
    Node node{ranks, Grid(siblings_, Tally(nics_))};
    for (std::size_t s = 0; s < siblings_; ++s)
      for (int i = 0; i < ranks; ++i) ++node.next_to[s][nic_of(i, s)];
    return node;
  }

  std::size_t slot_of(int i, std::size_t sibling) const {
    return static_cast<std::size_t>(group_.slot_of(i, static_cast<int>(sibling)));
  }
  std::size_t nic_of(int i, std::size_t sibling) const {
    return static_cast<std::size_t>(nic_next_to(machine_, static_cast<int>(slot_of(i, sibling))));
  }
  const Node& node(int k) const { return k + 1 == group_.nodes() ? last_ : full_; }
  double elsewhere(const Node& node) const { return group_.ranks - node.ranks; }

  // Returns the number of ranks of the whole group next to this NIC of their node.
  double next_to(std::size_t sibling, std::size_t nic) const {
    return (group_.nodes() - 1) * full_.next_to[sibling][nic] + last_.next_to[sibling][nic];
  }

  const std::vector<LinkId>& route(VertexId from, VertexId to) {
    route_.clear();
    router_.append_route(from, to, 0, route_);
    return route_;
  }

  void add(const std::vector<LinkId>& links, double messages, bool crossing) {
    for (const LinkId link : links) {
      Load& load = loads_[link];
      load.messages += messages;
      (crossing ? load.crossing : load.local) = true;
    }
  }

  void note(LinkId link, double messages, std::vector<FlowLoads::OnLink>& most) const {
    const Topology& topology = machine_.topology;
    const auto known = std::ranges::find_if(most, [&](const FlowLoads::OnLink& on) {
      return topology.role(on.link) == topology.role(link);
    });
    if (known == most.end())
      most.push_back({link, messages});
    else if (known->load < messages)
      *known = {link, messages};
  }

  // Counts the loads of a node's own links and NICs. The first node represents all equal ones.
  void inside(const Node& node) {
    loads_.clear();
    for (std::size_t s = 0; s < siblings_; ++s)
      for (int i = 0; i < node.ranks; ++i) add_messages_of(i, s, node);
    for (const auto& [link, load] : loads_) {
      if (load.local) note(link, load.messages, most_.local);
      if (load.crossing) note(link, load.messages, most_.crossing);
    }
  }

  void add_messages_of(int i, std::size_t sibling, const Node& node) {
    const VertexId end = ends_[slot_of(i, sibling)], turn = machine_.turns.front();
    for (int j = 0; j < node.ranks; ++j)
      if (j != i) add(route(end, ends_[slot_of(j, sibling)]), 1, false);
    const auto over = [&](std::size_t nic, double messages, bool out) {
      if (messages == 0) return;
      const VertexId port = machine_.nic[nic];
      add(out ? route(end, port) : route(port, end), messages, true);
      const LinkId cable = out ? route(port, turn).front() : route(turn, port).back();
      add({cable}, messages, true);
    };
    over(nic_of(i, sibling), elsewhere(node), false);
    if (!by_receiver_) return over(nic_of(i, sibling), elsewhere(node), true);
    for (std::size_t nic = 0; nic < nics_; ++nic)
      over(nic, next_to(sibling, nic) - node.next_to[sibling][nic], true);
  }

  // Returns the number of members on a node whose messages to ranks next to `nic` leave through a
  // leaf.
  double senders(const Node& node, std::size_t sibling, std::size_t leaf, std::size_t nic) const {
    if (by_receiver_) return leaf_of_[nic] == leaf ? node.ranks : 0;
    double through = 0;
    for (std::size_t own = 0; own < nics_; ++own)
      if (leaf_of_[own] == leaf) through += node.next_to[sibling][own];
    return through;
  }

  void between_leaves() {
    if (route(machine_.nic[0], machine_.turns[0]).size() < 2) return;
    for (std::size_t nic = 0; nic < nics_; ++nic) {
      const LinkId cable = route(machine_.nic[nic], machine_.turns[0]).front();
      const VertexId at = machine_.topology.link(cable).to;
      const auto known =
          std::ranges::find_if(leaves_, [&](const Leaf& leaf) { return leaf.at == at; });
      leaf_of_.push_back(static_cast<std::size_t>(known - leaves_.begin()));
      if (known == leaves_.end()) leaves_.push_back({at, {}, {}});
    }
    const Grid everywhere = receivers(0, group_.nodes());
    const int parts = (group_.node_span() + machine_.part - 1) / machine_.part;
    std::set<int> unlike{0, parts - 1};
    for (int part = 1; part < parts && machine_.part % group_.node_stride != 0; ++part)
      unlike.insert(part);
    for (const int part : unlike) at_leaves_of(part, everywhere);
  }

  // Returns the first node of the group in a part or after it.
  int first_in(int part) const {
    const std::int64_t before = std::int64_t{part} * machine_.part;
    return static_cast<int>(std::min<std::int64_t>(
        group_.nodes(), (before + group_.node_stride - 1) / group_.node_stride));
  }

  std::size_t spine_of(int k, std::size_t nic) const {
    const auto at = static_cast<std::size_t>(std::int64_t{k} * group_.node_stride % machine_.part);
    return machine_.port[at * nics_ + nic] % machine_.turns.size();
  }

  // Returns the number of ranks of these nodes, by sibling and NIC and by the spine that serves
  // their port.
  Grid receivers(int begin, int end) const {
    Grid all(siblings_ * nics_, Tally(machine_.turns.size()));
    for (int k = begin; k < end; ++k) {
      for (std::size_t nic = 0; nic < nics_; ++nic) {
        const std::size_t spine = spine_of(k, nic);
        for (std::size_t s = 0; s < siblings_; ++s)
          all[s * nics_ + nic][spine] += node(k).next_to[s][nic];
      }
    }
    return all;
  }

  void at_leaves_of(int part, const Grid& everywhere) {
    const int begin = first_in(part), end = first_in(part + 1);
    if (begin == end) return;
    for (Leaf& leaf : leaves_) {
      leaf.up.assign(machine_.turns.size(), 0);
      leaf.down.assign(machine_.turns.size(), 0);
    }
    const Grid here = receivers(begin, end);
    for (std::size_t s = 0; s < siblings_; ++s)
      for (std::size_t nic = 0; nic < nics_; ++nic) {
        Tally sending(leaves_.size());
        for (std::size_t leaf = 0; leaf < leaves_.size(); ++leaf)
          sending[leaf] = (end - begin - 1) * senders(full_, s, leaf, nic) +
                          senders(node(end - 1), s, leaf, nic);
        for (int k = begin; k < end; ++k) between_leaves_here(k, s, nic, sending);
        const Tally &all = everywhere[s * nics_ + nic], &near = here[s * nics_ + nic];
        for (std::size_t leaf = 0; leaf < leaves_.size(); ++leaf)
          for (std::size_t spine = 0; spine < all.size(); ++spine)
            leaves_[leaf].up[spine] += (all[spine] - near[spine]) * sending[leaf];
      }
    for (const Leaf& leaf : leaves_) note_spines(leaf);
  }

  // Counts the messages to the ranks next to a NIC: down to its leaf, and up from the other leaves
  // of its part.
  void between_leaves_here(int k, std::size_t sibling, std::size_t nic, const Tally& sending) {
    const double ranks = node(k).next_to[sibling][nic];
    if (ranks == 0) return;
    const std::size_t spine = spine_of(k, nic), own = leaf_of_[nic];
    for (std::size_t leaf = 0; leaf < leaves_.size(); ++leaf) {
      const double near = sending[leaf] - senders(node(k), sibling, leaf, nic);
      if (leaf == own)
        leaves_[leaf].down[spine] += ranks * (elsewhere(node(k)) - near);
      else
        leaves_[leaf].up[spine] += ranks * near;
    }
  }

  void note_spines(const Leaf& leaf) {
    for (std::size_t spine = 0; spine < leaf.up.size(); ++spine) {
      const VertexId at = machine_.turns[spine];
      if (leaf.up[spine] > 0) note(route(leaf.at, at).front(), leaf.up[spine], most_.crossing);
      if (leaf.down[spine] > 0) note(route(at, leaf.at).front(), leaf.down[spine], most_.crossing);
    }
  }

  const ProcessGroup& group_;
  const Machine& machine_;
  const std::vector<VertexId>& ends_;  // endpoints of the ranks, by slot
  Router& router_;
  bool by_receiver_;
  std::size_t nics_, siblings_;
  Node full_, last_;
  std::map<LinkId, Load> loads_;
  std::vector<Leaf> leaves_;          // leaves of a part
  std::vector<std::size_t> leaf_of_;  // indexed by NIC of a node
  std::vector<LinkId> route_;
  ExchangeLoads most_;
};

}  // namespace

ExchangeLoads exchange_loads(const ProcessGroup& group, const Machine& machine, Endpoint endpoint,
                             Router& router, bool by_rail_of_receiver) {
  return LinkCounts(group, machine, endpoint, router, by_rail_of_receiver).most();
}

}  // namespace lambcast
