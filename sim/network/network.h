// Times of flows that start together, by two models over the same topology:
//
//   AnalyticNetwork  each flow gets its fair share of the narrowest link on its route, and
//                    keeps it: time = bytes / share. Closed form; only flows of its own set count.
//   FlowNetwork      max-min fair rates over all active flows, recomputed whenever a flow begins or
//                    ends (fluid model; Bertsekas and Gallager, Data Networks, section 6.5.2).
//
// Where no two sets share a link and the flows of a set are alike, the two agree; a test holds them
// to it. A network is driven by the engine with two calls: "when is your next event" and "advance
// to t".
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/network/topology.h"

namespace lambcast {

// Rate of each of `flows` consecutive flows, and its rate alone: the narrowest link's capacity.
struct Share {
  Bandwidth each, alone;
  std::uint32_t flows;
};

// Links that bound the rate of each flow of a set while all its flows are active (fair_share.h).
// Flows of the same weight over links of the same roles and loads are a class. The classes are
// those of all machines with the same wiring.
struct FlowLoads {
  struct OnLink {
    LinkId link;
    double load;  // weight of all flows on it
    bool operator==(const OnLink&) const = default;
  };
  struct Class {
    std::vector<OnLink> links;
    std::uint32_t weight = 1;
    // Rate of each of its flows, and of one unit of its weight alone; zero without links.
    Share share(const Topology& topology) const;
  };
  struct Run {
    std::uint32_t of;     // class
    std::uint32_t flows;  // in a row
  };
  std::vector<Class> classes;
  std::vector<Run> runs;  // in the order of the flows

  std::vector<Share> shares(const Topology& topology) const;
};

// Lists of links, one after another: i is links [first[i], first[i + 1]).
struct LinkLists {
  std::vector<LinkId> links;
  std::vector<std::uint32_t> first{0};

  std::size_t size() const { return first.size() - 1; }
  std::span<const LinkId> of(std::size_t i) const {
    return {links.data() + first[i], links.data() + first[i + 1]};
  }
  void add(std::span<const LinkId> list);
  void end_list() { first.push_back(static_cast<std::uint32_t>(links.size())); }
  void reserve(std::size_t lists, std::size_t links_each);
  void clear();
};

// Routes of the flows of a set, the same for all sizes, protocols and caps. The shares suffice for
// a set that has the network to itself. So links are found when first requested, and kept from then
// on: the million flows of an all-to-all use ten links each.
class Paths {
 public:
  using Find = std::function<void(LinkLists&)>;  // appends the links of each flow
  // `loads`: what bounds the flows on `topology`, if the caller has found it.
  Paths(std::size_t flows, Find find, FlowLoads loads, const Topology& topology);
  // Paths whose links are given.
  Paths(LinkLists links, FlowLoads loads, const Topology& topology);
  explicit Paths(LinkLists links);

  std::size_t size() const { return flows_; }
  const LinkLists& links() const;
  LinkLists find_links() const;  // the same, not kept
  const std::vector<Share>& shares() const { return shares_; }
  const FlowLoads& loads() const { return *loads_; }
  // The same paths on a machine with the same wiring and other capacities.
  Paths on(const Topology& topology) const;

 private:
  // Links found at the first request, by any thread.
  struct Late {
    explicit Late(Find of) : find(std::move(of)) {}
    Find find;
    std::once_flag once;
    LinkLists links;
  };
  std::size_t flows_;
  std::shared_ptr<const FlowLoads> loads_;
  std::vector<Share> shares_;
  LinkLists links_{};
  std::shared_ptr<Late> late_{};  // null if the links are given
};

// A transfer of `bytes` at no more than `cap` (zero: none; a TCP stream has one). `weight` equal
// transfers on the same route may be written as one flow with the bytes of all: it counts `weight`
// times where links are shared, and its cap is that of all of them.
struct Flow {
  Bytes bytes;
  Bandwidth cap{};
  std::uint32_t weight = 1;
  std::uint32_t count = 1;  // of such flows, on paths that follow one another

  bool operator==(const Flow&) const = default;
};

// Flows that start together and are waited for together: one round of a collective. Sets that
// differ in bytes and caps alone share their paths.
struct FlowSet {
  FlowSet(std::shared_ptr<const Paths> on, std::vector<Flow> of)
      : paths(std::move(on)), flows(std::move(of)) {}
  // From a list of links for each flow.
  FlowSet(const std::vector<std::vector<LinkId>>& on, std::vector<Flow> of);

  std::size_t size() const { return paths->size(); }
  // visit(flow, number of its path), in order.
  template <typename Visit>
  void each(const Visit& visit) const {
    std::size_t path = 0;
    for (const Flow& flow : flows)
      for (std::uint32_t i = 0; i < flow.count; ++i) visit(flow, path++);
  }

  std::shared_ptr<const Paths> paths;
  std::vector<Flow> flows;
};

// Names a started set when it finishes.
using Ticket = std::uint32_t;

class Network {
 public:
  virtual ~Network() = default;
  // Starts `times` back-to-back repetitions of the set as one: every flow carries `times` its
  // bytes. `flows` must outlive the network. An empty set finishes at `now`.
  virtual void start(Ticket ticket, const FlowSet& flows, std::int64_t times, SimTime now) = 0;
  // When the next flow ends, if anything is in flight.
  virtual std::optional<SimTime> next_event() = 0;
  // Moves to `now` (never past next_event()) and appends the tickets of sets that are complete.
  virtual void advance(SimTime now, std::vector<Ticket>& finished) = 0;
};

enum class NetworkModel { analytic, flow };
const std::vector<std::string>& network_model_names();
std::string_view name_of(NetworkModel model);

std::unique_ptr<Network> make_network(NetworkModel model, const Topology& topology);

// The closed form of AnalyticNetwork for one set on its own.
Duration analytic_time(const FlowSet& flows, const Topology& topology);

}  // namespace lambcast
