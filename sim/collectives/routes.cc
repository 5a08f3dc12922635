#include "sim/collectives/routes.h"

#include <algorithm>
#include <array>
#include <mutex>
#include <span>
#include <utility>

#include "sim/base/check.h"
#include "sim/collectives/exchange_loads.h"
#include "sim/network/fair_share.h"

namespace lambcast {
namespace {

constexpr std::size_t usual_links = 8;  // typical number of links of a route

// Returns the weight of each flow; empty if all are 1.
std::vector<std::uint32_t> weights_of(const std::vector<Send>& sends, int siblings) {
  std::vector<std::uint32_t> weights;
  if (std::ranges::all_of(sends, [](const Send& send) { return send.weight == 1; })) return weights;
  for (int sibling = 0; sibling < siblings; ++sibling)
    for (const Send& send : sends)
      weights.insert(weights.end(), static_cast<std::size_t>(send.count), send.weight);
  return weights;
}

class Finder {
 public:
  Finder(const ProcessGroup& group, const Machine& machine, Endpoint endpoint, Router& router,
         const Place& place)
      : group_(group),
        machine_(machine),
        endpoint_(endpoint),
        router_(router),
        place_(place),
        ways_out_(static_cast<std::size_t>(machine.gpus_per_node * machine.nics_per_node)),
        ways_in_(ways_out_.size()) {
    const int last = place.slot + group.slot_of(group.per_node - 1, group.siblings - 1);
    const int last_node = place.node + (group.nodes() - 1) * group.node_stride;
    LAMBCAST_CHECK(last < machine.gpus_per_node && last_node < machine.nodes,
                   "{} groups of {} ranks do not fit {} nodes of {} GPUs", group.siblings,
                   group.ranks, machine.nodes, machine.gpus_per_node);
    for (int sibling = 0; sibling < group.siblings; ++sibling) {
      nics_.push_back(nics_of(group, machine, place, sibling));
      if (machine.folded) continue;
      for (int rank = 0; rank < group.ranks; ++rank) members_.push_back(place_of(rank, sibling));
    }
  }

  // Appends the links of each send of a set. For `halves` see CommSchedule.
  void find(const std::vector<Send>& sends, bool halves, LinkLists& paths) {
    find(sends, halves, paths, [] {});
  }

  // Finds the links of a set in pieces of about `most` links and calls `take` with each piece.
  void find_pieces(const std::vector<Send>& sends, bool halves, std::size_t most, LinkLists& piece,
                   const FairShares::Take& take) {
    piece.clear();
    find(sends, halves, piece, [&] {
      if (piece.links.size() < most) return;
      take(piece);
      piece.clear();
    });
    if (piece.size() > 0) take(piece);
  }

 private:
  template <typename Found>
  void find(const std::vector<Send>& sends, bool halves, LinkLists& paths, const Found& found) {
    halves_ = halves;
    for (int sibling = 0; sibling < group_.siblings; ++sibling) {
      const std::vector<int>& reached = nics_[static_cast<std::size_t>(sibling)];
      for (const Send& send : sends) {
        for (int i = 0; i < send.count; ++i) {
          route(send.rail, member(send.from + i, sibling), member(send.to + i, sibling), reached,
                paths.links);
          paths.end_list();
          found();
        }
      }
    }
  }

  // A rank of a sibling on the machine.
  struct Member {
    int node;          // node of the cluster; the machine has this node or its image
    std::size_t at;    // index of its endpoint in the machine
    std::size_t nics;  // index of its node's first NIC
    std::size_t nic;   // index of its own NIC within the node
  };

  Member member(int rank, int sibling) const {
    if (members_.empty()) return place_of(rank, sibling);
    return members_[static_cast<std::size_t>(sibling) * static_cast<std::size_t>(group_.ranks) +
                    static_cast<std::size_t>(rank)];
  }

  Member place_of(int rank, int sibling) const {
    const int node = place_.node + group_.node_of(rank) * group_.node_stride;
    const int slot = place_.slot + group_.slot_of(rank, sibling);
    const auto written = static_cast<std::size_t>(node % machine_.written);
    const std::size_t at =
        written * static_cast<std::size_t>(machine_.gpus_per_node) + static_cast<std::size_t>(slot);
    return {node, at, written * static_cast<std::size_t>(machine_.nics_per_node),
            static_cast<std::size_t>(nic_next_to(machine_, slot))};
  }

  void route(int rail, const Member& from, const Member& to, const std::vector<int>& reached,
             std::vector<LinkId>& links) {
    if (from.node == to.node) return append(inside(from, to), links);
    const std::size_t to_nic = nic(to, to, rail, reached);
    const std::size_t from_nic = nic(from, to, rail, reached);
    const Way leaves = way(from, true, from_nic);
    const Way enters = way(to, false, to_nic);
    const VertexId out = machine_.nic[from.nics + from_nic];
    const VertexId in = machine_.nic[to.nics + to_nic];
    const std::uint32_t port = machine_.port[to.nics + to_nic];
    if (machine_.folded && from.node / machine_.written != to.node / machine_.written) {
      // The route leaves up to the switch that leads to the other part, and comes back to the image
      // of its target.
      const VertexId turn = machine_.turns[port % machine_.turns.size()];
      if (is_written(from)) {
        append(leaves, links);
        router_.append_route(out, turn, port, links);
      }
      if (is_written(to)) {
        router_.append_route(turn, in, port, links);
        append(enters, links);
      }
    } else {
      append(leaves, links);
      router_.append_route(out, in, port, links);
      append(enters, links);
    }
  }

  // Returns whether the member itself is written, not only its image.
  bool is_written(const Member& member) const { return !halves_ || member.node < machine_.written; }

  // Links inside a node: from a rank to a NIC, from a NIC to a rank, or between two ranks.
  struct Way {
    bool found = false;
    std::uint8_t links = 0;
    std::array<LinkId, 6> link{};
  };

  // Returns the links between two ranks of a node. All nodes are wired alike and in sequence, so
  // links are found for one node and shifted.
  Way inside(const Member& from, const Member& to) {
    const auto gpus = static_cast<std::size_t>(machine_.gpus_per_node);
    const std::size_t out = from.at % gpus, in = to.at % gpus;
    if (inside_.empty()) inside_.resize(gpus * gpus);
    Way& first = inside_[out * gpus + in];
    if (!first.found) find_way(endpoint(out), endpoint(in), first);
    return shifted(first, from.at / gpus);
  }

  Way way(const Member& member, bool out, std::size_t nic) {
    const auto gpus = static_cast<std::size_t>(machine_.gpus_per_node);
    const std::size_t slot = member.at % gpus;
    Way& first =
        (out ? ways_out_ : ways_in_)[slot * static_cast<std::size_t>(machine_.nics_per_node) + nic];
    const VertexId of_nic = machine_.nic[nic];
    if (!first.found) find_way(out ? endpoint(slot) : of_nic, out ? of_nic : endpoint(slot), first);
    return shifted(first, member.at / gpus);
  }

  VertexId endpoint(std::size_t slot) const {
    return endpoint_ == Endpoint::gpu ? machine_.gpu[slot] : machine_.host[slot];
  }

  Way shifted(Way way, std::size_t node) {
    if (node == 0) return way;
    for (std::size_t i = 0; i < way.links; ++i)
      way.link[i] += static_cast<LinkId>(node * links_of_node());
    return way;
  }

  std::size_t links_of_node() {
    if (links_of_node_ == 0) {
      const auto gpus = static_cast<std::size_t>(machine_.gpus_per_node);
      Way here, next;
      find_way(machine_.gpu[0], machine_.nic[0], here);
      find_way(machine_.gpu[gpus], machine_.nic[static_cast<std::size_t>(machine_.nics_per_node)],
               next);
      links_of_node_ = next.link[0] - here.link[0];
    }
    return links_of_node_;
  }

  // Finds one of the shortest paths.
  void find_way(VertexId from, VertexId to, Way& way) {
    to_nic_.clear();
    router_.append_route(from, to, 0, to_nic_);
    LAMBCAST_CHECK(to_nic_.size() <= way.link.size(), "{} links within a node", to_nic_.size());
    way.found = true;
    way.links = static_cast<std::uint8_t>(to_nic_.size());
    std::ranges::copy(to_nic_, way.link.begin());
  }

  static void append(const Way& way, std::vector<LinkId>& links) {
    links.insert(links.end(), way.link.begin(), way.link.begin() + way.links);
  }

  // Returns the NIC of a member. A rail selects one of the NICs that the group uses; without a rail
  // it is the NIC next to the member or to its receiver.
  static std::size_t nic(const Member& member, const Member& receiver, int rail,
                         const std::vector<int>& reached) {
    if (rail == Send::own_rail) return member.nic;
    if (rail == Send::rail_of_receiver) return receiver.nic;
    return static_cast<std::size_t>(reached[static_cast<std::size_t>(rail) % reached.size()]);
  }

  const ProcessGroup& group_;
  const Machine& machine_;
  Endpoint endpoint_;
  Router& router_;
  const Place& place_;
  std::vector<Member> members_;          // indexed by sibling and rank, if all are written
  std::vector<std::vector<int>> nics_;   // NICs of a node that each sibling uses
  std::vector<Way> ways_out_, ways_in_;  // indexed by slot and NIC, in the first node
  std::vector<Way> inside_;              // indexed by both slots, in the first node
  std::size_t links_of_node_ = 0;
  std::vector<LinkId> to_nic_;  // links of the path being found
  bool halves_ = false;         // whether the current set has halves
};

// Returns the loads of an exchange, by sibling: for the send within a node, if any, and for the
// send between nodes.
FlowLoads message_loads(const std::vector<Send>& sends, const ExchangeLoads& of, int siblings) {
  FlowLoads loads;
  for (const Send& send : sends)
    loads.classes.push_back({&send == &sends.back() ? of.crossing : of.local, send.weight});
  for (int sibling = 0; sibling < siblings; ++sibling)
    for (std::uint32_t i = 0; i < sends.size(); ++i) loads.runs.push_back({i, 1});
  return loads;
}

}  // namespace

Routes find_routes(const CommSchedule& schedule, const ProcessGroup& group,
                   const std::shared_ptr<const Machine>& machine, Endpoint endpoint,
                   const std::shared_ptr<Router>& router, const std::optional<Place>& beside) {
  const Place place = beside.value_or(Place());
  Routes routes;
  if (schedule.send_sets.empty()) return routes;
  const std::lock_guard in_use(router->in_use());
  Finder finder(group, *machine, endpoint, *router, place);
  FairShares& shares = router->shares();
  LinkLists written;
  for (const std::vector<Send>& sends : schedule.send_sets) {
    const std::vector<std::uint32_t> weights = weights_of(sends, group.siblings);
    const std::size_t flows = sends_in(sends) * static_cast<std::size_t>(group.siblings);
    written.reserve(std::min(flows, most_links_kept / usual_links), usual_links);
    const auto again = [&] {
      return [=, halves = schedule.halves](LinkLists& lists) {
        const std::lock_guard in_use_again(router->in_use());
        Finder(group, *machine, endpoint, *router, place).find(sends, halves, lists);
      };
    };
    if (schedule.everybody) {
      const auto each = exchange_loads(group, *machine, endpoint, *router,
                                       sends.front().rail == Send::rail_of_receiver);
      return {std::make_shared<const Paths>(
          flows, again(), message_loads(sends, each, group.siblings), machine->topology)};
    }
    bool whole = false;  // whether `written` has all links
    const auto pieces = [&](const FairShares::Take& take) {
      if (whole) return take(written);
      finder.find_pieces(sends, schedule.halves, beside ? ~std::size_t{0} : most_links_kept,
                         written, take);
      whole = written.size() == flows;
    };
    FlowLoads loads = shares.of(pieces, weights);
    if (whole && (beside || schedule.send_sets.size() == 1))
      routes.push_back(std::make_shared<const Paths>(std::exchange(written, {}), std::move(loads),
                                                     machine->topology));
    else
      routes.push_back(
          std::make_shared<const Paths>(flows, again(), std::move(loads), machine->topology));
  }
  return routes;
}

Routes on(const Topology& topology, const Routes& routes) {
  Routes there = routes;
  for (auto& paths : there)
    if (paths->loads().shares(topology) != paths->shares())
      paths = std::make_shared<const Paths>(paths->on(topology));
  return there;
}

}  // namespace lambcast
