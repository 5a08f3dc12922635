// Times of flows that start together, by two models over the same topology:
//
//   AnalyticNetwork  each flow keeps its fair share of the narrowest link on its route:
//                    time = bytes / share. Closed form; other sets have no effect.
//   FlowNetwork      max-min fair rates over all active flows, recomputed whenever a flow begins or
//                    ends (fluid model; Bertsekas and Gallager, Data Networks, section 6.5.2).
//
// The two agree if no two sets share a link and the flows of a set are alike; a test checks this.
// The engine drives a network with two calls: next_event() and advance().
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

// Rates of `flows` consecutive flows: `each` is the rate of a flow in the set, `alone` the capacity
// of its narrowest link.
struct Share {
  Bandwidth each, alone;
  std::uint32_t flows;
  bool operator==(const Share&) const = default;
};

// Links that bound the rates of a set's flows while all of them are active (fair_share.h). Flows of
// the same weight over links of the same roles and loads form a class. All machines with the same
// wiring have the same classes.
struct FlowLoads {
  struct OnLink {
    LinkId link;
    double load;  // total weight of the flows on it
    bool operator==(const OnLink&) const = default;
  };
  struct Class {
    std::vector<OnLink> links;
    std::uint32_t weight = 1;
    // Returns the rate of each flow of the class, and the rate that one unit of weight has without
    // contention. Both are zero without links.
    Share share(const Topology& topology) const;
  };
  struct Run {
    std::uint32_t of;     // index of the class
    std::uint32_t flows;  // number of consecutive flows
  };
  std::vector<Class> classes;
  std::vector<Run> runs;  // runs in the order of the flows

  std::vector<Share> shares(const Topology& topology) const;
};

// Lists of links stored in one array: list i is links [first[i], first[i + 1]).
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

// Routes of the flows of a set, shared by all sizes, protocols and caps. Links are found at the
// first request, since a set that has the network to itself needs only the shares: the million
// flows of an all-to-all use ten links each.
class Paths {
 public:
  using Find = std::function<void(LinkLists&)>;  // appends the links of each flow
  // `loads` are the loads of the flows on `topology`, if the caller has them.
  Paths(std::size_t flows, Find find, FlowLoads loads, const Topology& topology);
  // Creates paths from given links.
  Paths(LinkLists links, FlowLoads loads, const Topology& topology);
  explicit Paths(LinkLists links);

  std::size_t size() const { return flows_; }
  const LinkLists& links() const;
  LinkLists find_links() const;  // finds the links without keeping them
  const std::vector<Share>& shares() const { return shares_; }
  const FlowLoads& loads() const { return *loads_; }
  // Returns the same paths on a machine with the same wiring and other capacities.
  Paths on(const Topology& topology) const;

 private:
  // Links that any thread finds at the first request.
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

// A transfer of `bytes` at a rate of at most `cap`, as of a TCP stream (zero: no cap). `weight`
// equal transfers on one route may be written as one flow with the bytes and the cap of all of
// them; it counts `weight` times where links are shared.
struct Flow {
  Bytes bytes;
  Bandwidth cap{};
  std::uint32_t weight = 1;
  std::uint32_t count = 1;  // number of such flows, on consecutive paths

  bool operator==(const Flow&) const = default;
};

// Flows that start together and are waited for together: one round of a collective. Sets that
// differ only in bytes and caps share their paths.
struct FlowSet {
  FlowSet(std::shared_ptr<const Paths> on, std::vector<Flow> of)
      : paths(std::move(on)), flows(std::move(of)) {}
  // Builds a set from a list of links for each flow.
  FlowSet(const std::vector<std::vector<LinkId>>& on, std::vector<Flow> of);

  std::size_t size() const { return paths->size(); }
  // Calls visit(flow, index of its path) in order.
  template <typename Visit>
  void each(const Visit& visit) const {
    std::size_t path = 0;
    for (const Flow& flow : flows)
      for (std::uint32_t i = 0; i < flow.count; ++i) visit(flow, path++);
  }

  std::shared_ptr<const Paths> paths;
  std::vector<Flow> flows;
};

// Identifies a started set when it finishes.
using Ticket = std::uint32_t;

class Network {
 public:
  virtual ~Network() = default;
  // Starts `times` back-to-back repetitions of the set as one: every flow has `times` its bytes.
  // `flows` must outlive the network. An empty set finishes at `now`.
  virtual void start(Ticket ticket, const FlowSet& flows, std::int64_t times, SimTime now) = 0;
  // Returns the time of the next end of a flow, if any flow is in flight.
  virtual std::optional<SimTime> next_event() = 0;
  // Moves the clock to `now` (which must not be past next_event()) and appends the tickets of
  // finished sets.
  virtual void advance(SimTime now, std::vector<Ticket>& finished) = 0;
};

enum class NetworkModel { analytic, flow };
const std::vector<std::string>& network_model_names();
std::string_view name_of(NetworkModel model);

std::unique_ptr<Network> make_network(NetworkModel model, const Topology& topology);

// Returns the time of a single set by the closed form of AnalyticNetwork.
Duration analytic_time(const FlowSet& flows, const Topology& topology);

}  // namespace lambcast
