#include "sim/collectives/routes.h"

#include "sim/base/check.h"

namespace lambcast {
namespace {

class Finder {
 public:
  Finder(const ProcessGroup& group, const Machine& machine, Endpoint endpoint, Router& router,
         const Place& place)
      : group_(group),
        machine_(machine),
        endpoint_(endpoint),
        router_(router),
        place_(place),
        ways_out_(machine.gpu.size()),
        ways_in_(machine.gpu.size()) {
    const int last = place.slot + group.slot_of(group.per_node - 1, group.siblings - 1);
    LAMBCAST_CHECK(last < machine.gpus_per_node && place.node + group.node_span() <= machine.nodes,
                   "{} groups of {} ranks do not fit {} nodes of {} GPUs", group.siblings,
                   group.ranks, machine.nodes, machine.gpus_per_node);
    for (int sibling = 0; sibling < group.siblings; ++sibling)
      nics_.push_back(nics_of(group, machine, place, sibling));
  }

  RoutedSends of(const std::vector<Send>& sends) {
    std::vector<LinkId> links;
    RoutedSends routed;
    routed.first.reserve(sends.size() * static_cast<std::size_t>(group_.siblings) + 1);
    for (int sibling = 0; sibling < group_.siblings; ++sibling) {
      for (const Send& send : sends) {
        routed.first.push_back(static_cast<std::uint32_t>(links.size()));
        append_route(send, sibling, links);
      }
    }
    routed.first.push_back(static_cast<std::uint32_t>(links.size()));
    routed.links = std::make_shared<const std::vector<LinkId>>(std::move(links));
    return routed;
  }

 private:
  void append_route(const Send& send, int sibling, std::vector<LinkId>& links) {
    if (group_.node_of(send.from) == group_.node_of(send.to)) {
      router_.append_route(endpoint(send.from, sibling), endpoint(send.to, sibling),
                           static_cast<std::uint32_t>(send.to), links);
      return;
    }
    const std::size_t to_nic = nic(send.to, sibling, send.rail);
    const VertexId out = machine_.nic[nic(send.from, sibling, send.rail)];
    const VertexId in = machine_.nic[to_nic];
    const std::uint32_t port = machine_.port[to_nic];
    append_way(send.from, sibling, send.rail, true, out, links);
    if (machine_.folded && node(send.from) / machine_.written != node(send.to) / machine_.written) {
      // Out to where it would turn to the other part, and back in: the image of its target.
      const VertexId turn = machine_.turns[port % machine_.turns.size()];
      router_.append_route(out, turn, port, links);
      router_.append_route(turn, in, port, links);
    } else {
      router_.append_route(out, in, port, links);
    }
    append_way(send.to, sibling, send.rail, false, in, links);
  }

  // Between a rank and a NIC of its node, where one way is shortest; that to its own NIC is kept.
  void append_way(int rank, int sibling, int rail, bool out, VertexId nic,
                  std::vector<LinkId>& links) {
    const std::size_t at = endpoint_index(rank, sibling);
    std::vector<LinkId>& kept = (out ? ways_out_ : ways_in_)[at];
    if (rail < 0 && !kept.empty()) {
      links.insert(links.end(), kept.begin(), kept.end());
      return;
    }
    const std::size_t first = links.size();
    const VertexId end = endpoint(rank, sibling);
    router_.append_route(out ? end : nic, out ? nic : end, 0, links);
    if (rail < 0) kept.assign(links.begin() + static_cast<std::ptrdiff_t>(first), links.end());
  }

  int node(int rank) const { return place_.node + group_.node_of(rank) * group_.node_stride; }

  // Of the node or its image.
  std::size_t written_node(int rank) const {
    return static_cast<std::size_t>(node(rank) % machine_.written);
  }

  std::size_t endpoint_index(int rank, int sibling) const {
    const auto slot = static_cast<std::size_t>(place_.slot + group_.slot_of(rank, sibling));
    return written_node(rank) * static_cast<std::size_t>(machine_.gpus_per_node) + slot;
  }

  VertexId endpoint(int rank, int sibling) const {
    const std::size_t at = endpoint_index(rank, sibling);
    return endpoint_ == Endpoint::gpu ? machine_.gpu[at] : machine_.host[at];
  }

  // A rail names its NIC among those that the group reaches; without one a rank uses the NIC next
  // to it.
  std::size_t nic(int rank, int sibling, int rail) const {
    const std::vector<int>& reached = nics_[static_cast<std::size_t>(sibling)];
    const int index = rail >= 0
                          ? reached[static_cast<std::size_t>(rail) % reached.size()]
                          : nic_next_to(machine_, place_.slot + group_.slot_of(rank, sibling));
    return written_node(rank) * static_cast<std::size_t>(machine_.nics_per_node) +
           static_cast<std::size_t>(index);
  }

  const ProcessGroup& group_;
  const Machine& machine_;
  Endpoint endpoint_;
  Router& router_;
  const Place& place_;
  std::vector<std::vector<int>> nics_;                   // of a node, that each sibling reaches
  std::vector<std::vector<LinkId>> ways_out_, ways_in_;  // by endpoint, to and from its own NIC
};

}  // namespace

Routes find_routes(const Schedule& schedule, const ProcessGroup& group, const Machine& machine,
                   Endpoint endpoint, Router& router, const Place& place) {
  Routes routes;
  if (schedule.send_sets.empty()) return routes;
  Finder finder(group, machine, endpoint, router, place);
  for (const std::vector<Send>& sends : schedule.send_sets) routes.push_back(finder.of(sends));
  return routes;
}

}  // namespace lambcast
