#include "sim/collectives/routes.h"

#include <algorithm>
#include <array>
#include <span>

#include "sim/base/check.h"
#include "sim/network/fair_share.h"

namespace lambcast {
namespace {

// By flow; empty: all are 1.
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
        shares_(machine.topology),
        ways_out_(machine.gpu.size() * static_cast<std::size_t>(machine.nics_per_node)),
        ways_in_(ways_out_.size()) {
    const int last = place.slot + group.slot_of(group.per_node - 1, group.siblings - 1);
    LAMBCAST_CHECK(last < machine.gpus_per_node && place.node + group.node_span() <= machine.nodes,
                   "{} groups of {} ranks do not fit {} nodes of {} GPUs", group.siblings,
                   group.ranks, machine.nodes, machine.gpus_per_node);
    stretches_->add({});  // Paths::no_links
    for (int sibling = 0; sibling < group.siblings; ++sibling) {
      nics_.push_back(nics_of(group, machine, place, sibling));
      if (machine.folded) continue;
      for (int rank = 0; rank < group.ranks; ++rank) members_.push_back(place_of(rank, sibling));
    }
  }

  // `halves` as CommSchedule has it.
  std::shared_ptr<const Paths> of(const std::vector<Send>& sends, bool halves) {
    halves_ = halves;
    Paths paths;
    paths.stretches = stretches_;
    paths.path.reserve(sends_in(sends) * static_cast<std::size_t>(group_.siblings));
    written_.clear();
    for (int sibling = 0; sibling < group_.siblings; ++sibling) {
      const std::vector<int>& reached = nics_[static_cast<std::size_t>(sibling)];
      for (const Send& send : sends) {
        for (int i = 0; i < send.count; ++i) {
          paths.path.push_back(route(send.to + i, send.rail, member(send.from + i, sibling),
                                     member(send.to + i, sibling), reached));
          written_.end_list();
        }
      }
    }
    paths.shares = shares_.of(written_, weights_of(sends, group_.siblings));
    return std::make_shared<const Paths>(std::move(paths));
  }

 private:
  // A rank of a sibling on the machine.
  struct Member {
    int node;        // of the cluster; written down, it or its image
    std::size_t at;  // among the machine's endpoints
    VertexId endpoint;
    std::size_t nic;  // its own
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
    return {node, at, endpoint_ == Endpoint::gpu ? machine_.gpu[at] : machine_.host[at],
            written * static_cast<std::size_t>(machine_.nics_per_node) +
                static_cast<std::size_t>(nic_next_to(machine_, slot))};
  }

  // Appends its links to those of the set at hand.
  Paths::Path route(int to_rank, int rail, const Member& from, const Member& to,
                    const std::vector<int>& reached) {
    const std::size_t begin = written_.links.size();
    if (from.node == to.node) {
      router_.append_route(from.endpoint, to.endpoint, static_cast<std::uint32_t>(to_rank),
                           written_.links);
      return {stretch_from(begin), Paths::no_links, Paths::no_links};
    }
    const std::size_t from_nic = nic(from, rail, reached);
    const std::size_t to_nic = nic(to, rail, reached);
    Way& leaves = way(from, true, from_nic);
    Way& enters = way(to, false, to_nic);
    const VertexId out = machine_.nic[from_nic];
    const VertexId in = machine_.nic[to_nic];
    const std::uint32_t port = machine_.port[to_nic];
    if (machine_.folded && from.node / machine_.written != to.node / machine_.written) {
      // Out to where it would turn to the other part, and back in: the image of its target.
      const VertexId turn = machine_.turns[port % machine_.turns.size()];
      if (is_written(from)) {
        append(leaves);
        router_.append_route(out, turn, port, written_.links);
      }
      if (is_written(to)) {
        router_.append_route(turn, in, port, written_.links);
        append(enters);
      }
    } else if (const auto known = router_.way(out, in, port)) {
      return append(leaves, *known, enters);
    } else {
      append(leaves);
      router_.append_route(out, in, port, written_.links);
      append(enters);
    }
    return {stretch_from(begin), Paths::no_links, Paths::no_links};
  }

  // Whether it stands where it is, and not elsewhere.
  bool is_written(const Member& member) const { return !halves_ || member.node < machine_.written; }

  // Between a rank and a NIC of its node, and with the link between the NIC and its switch.
  struct Way {
    bool found = false;
    std::uint8_t links = 0;
    std::array<LinkId, 6> link{};
    LinkId beyond{};
    std::uint32_t stretch = Paths::no_links;
    std::span<const LinkId> all() const { return {link.data(), links}; }
  };

  // One of them is shortest: found once.
  Way& way(const Member& member, bool out, std::size_t nic) {
    const auto nics = static_cast<std::size_t>(machine_.nics_per_node);
    Way& way = (out ? ways_out_ : ways_in_)[member.at * nics + nic % nics];
    if (way.found) return way;
    const VertexId of_nic = machine_.nic[nic];
    std::vector<LinkId> links;
    router_.append_route(out ? member.endpoint : of_nic, out ? of_nic : member.endpoint, 0, links);
    LAMBCAST_CHECK(links.size() <= way.link.size(), "{} links from a rank to its NIC",
                   links.size());
    way.found = true;
    way.links = static_cast<std::uint8_t>(links.size());
    std::copy(links.begin(), links.end(), way.link.begin());
    return way;
  }

  void append(const Way& way) {
    written_.links.insert(written_.links.end(), way.all().begin(), way.all().end());
  }

  // All of a route at once: most of what is asked.
  Paths::Path append(Way& leaves, const Router::Way& fabric, Way& enters) {
    const std::size_t begin = written_.links.size();
    written_.links.resize(begin + leaves.links + fabric.between.size() + 2 + enters.links);
    LinkId* at = written_.links.data() + begin;
    for (const LinkId link : leaves.all()) *at++ = link;
    *at++ = fabric.first;
    for (const LinkId link : fabric.between) *at++ = link;
    *at++ = fabric.last;
    for (const LinkId link : enters.all()) *at++ = link;
    const std::span<const LinkId> all(written_.links.data() + begin, at);
    const std::size_t out = leaves.links + std::size_t{1}, in = enters.links + std::size_t{1};
    return {stretch_of(leaves, fabric.first, all.first(out)),
            stretch_between(all.subspan(out, all.size() - out - in)),
            stretch_of(enters, fabric.last, all.last(in))};
  }

  // Of a path that has none in common with others: all that was appended since.
  std::uint32_t stretch_from(std::size_t begin) {
    return stretches_->add(std::span(written_.links).subspan(begin));
  }

  // A NIC has one link to the fabric, or its last one is remembered.
  std::uint32_t stretch_of(Way& way, LinkId beyond, std::span<const LinkId> links) {
    if (way.stretch == Paths::no_links || way.beyond != beyond) {
      way.stretch = stretches_->add(links);
      way.beyond = beyond;
    }
    return way.stretch;
  }

  // The last one kept at its place, if it is the same.
  std::uint32_t stretch_between(std::span<const LinkId> links) {
    constexpr std::size_t most_between = 1 << 13;
    if (links.empty()) return Paths::no_links;
    if (between_.empty()) between_.resize(most_between);
    std::uint32_t& kept =
        between_[(links.front() * 31 + links.back() * 17 + links.size()) % most_between];
    if (!std::ranges::equal(stretches_->of(kept), links)) kept = stretches_->add(links);
    return kept;
  }

  // A rail names its NIC among those that the group reaches; without one a rank uses the NIC next
  // to it.
  std::size_t nic(const Member& member, int rail, const std::vector<int>& reached) const {
    if (rail < 0) return member.nic;
    const auto written = static_cast<std::size_t>(member.node % machine_.written);
    return written * static_cast<std::size_t>(machine_.nics_per_node) +
           static_cast<std::size_t>(reached[static_cast<std::size_t>(rail) % reached.size()]);
  }

  const ProcessGroup& group_;
  const Machine& machine_;
  Endpoint endpoint_;
  Router& router_;
  const Place& place_;
  FairShares shares_;
  std::vector<Member> members_;          // by sibling and rank, where all are written down
  std::vector<std::vector<int>> nics_;   // of a node, that each sibling reaches
  std::vector<Way> ways_out_, ways_in_;  // by endpoint and NIC of its node
  LinkLists written_;                    // paths of the set at hand
  bool halves_ = false;                  // in it
  std::shared_ptr<LinkLists> stretches_ = std::make_shared<LinkLists>();
  std::vector<std::uint32_t> between_;  // stretches between NICs' switches, by their links
};

}  // namespace

Routes find_routes(const CommSchedule& schedule, const ProcessGroup& group, const Machine& machine,
                   Endpoint endpoint, Router& router, const Place& place) {
  Routes routes;
  if (schedule.send_sets.empty()) return routes;
  Finder finder(group, machine, endpoint, router, place);
  for (const std::vector<Send>& sends : schedule.send_sets)
    routes.push_back(finder.of(sends, schedule.halves));
  return routes;
}

void share_again(Routes& routes, const CommSchedule& schedule, const ProcessGroup& group,
                 const Topology& topology) {
  FairShares shares(topology);
  LinkLists written;
  for (std::size_t i = 0; i < routes.size(); ++i) {
    Paths paths = *routes[i];
    paths.write_out(written);
    paths.shares = shares.of(written, weights_of(schedule.send_sets[i], group.siblings));
    routes[i] = std::make_shared<const Paths>(std::move(paths));
  }
}

}  // namespace lambcast
