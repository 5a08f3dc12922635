// Max-min fair rates of flows that start and end (Bertsekas and Gallager, Data Networks, section
// 6.5.2), solved anew for as few flows as possible after each change.
//
// An allocation is max-min fair if every flow runs at its ceiling, or has a limit: a full link on
// which no flow of the same weight is faster. So after a change only these flows are solved, with
// the rates of all others fixed:
//
//   at first   new flows, and flows whose limiting link has another load
//   then       flows whose limiting link is no longer full or has a faster flow, and flows that
//              are faster than another flow that a solved link limits; until there are none
//
// Flows that are solved together are filled progressively: all rates rise until a link is full or a
// flow meets its ceiling; these flows freeze, and the others go on. The first few levels are found
// by passes over all links and flows, the others with a heap of links.
//
// If one link limits all flows that it carries, as in an incast, and some of them end, the others
// rise together to its capacity / weight, unless another link would be too full or a ceiling met.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/network/topology.h"

namespace lambcast {

class MaxMin {
 public:
  using FlowId = std::uint32_t;
  // `topology` must outlive this object.
  explicit MaxMin(const Topology& topology) : topology_(topology) {}

  // Adds a flow. `links` must outlive it and have no duplicates; `ceiling` is at most the capacity
  // of each link.
  FlowId add(std::span<const LinkId> links, std::uint32_t weight, double ceiling);
  void remove(FlowId id);

  // Returns whether flows were added or removed since the last solve().
  bool changed() const { return !touched_.empty() || !added_.empty(); }
  // Returns the flows whose rate changed, valid until the next call.
  std::span<const FlowId> solve();
  // Return the rate of a flow and of a link in bytes per second, as of the last solve().
  double rate(FlowId id) const { return flows_[id].level * flows_[id].weight; }
  double rate_on(LinkId link) const;

 private:
  enum class State : std::uint8_t { gone, fixed, rising, frozen };
  static constexpr LinkId at_ceiling = ~LinkId{0};
  static constexpr std::uint32_t last_bit = 63;

  struct Flow {
    std::span<const LinkId> links;
    double ceiling;  // highest rate per unit of weight, like levels
    double level;
    double before;  // level at the last solve(), zero for a new flow
    LinkId limit;
    std::uint32_t weight;
    std::uint64_t narrow = 0;  // narrow links by position; the last bit is for all further ones
    std::uint32_t reused = 0;  // distinguishes the flows that have had this number
    State state = State::gone;
  };
  struct On {
    FlowId flow;
    std::uint32_t reused;
    std::uint32_t position;  // position of the link in the flow's list
  };
  struct Carrier {
    std::vector<On> flows;  // may include removed flows
    std::uint32_t count = 0;
    bool narrow = false;  // cannot serve all flows at their ceilings; other links limit no flow
    bool touched = false, used = false, all_solved = false;
    double ceilings = 0;            // sum over all flows, bytes per second
    std::int64_t added_weight = 0;  // weight added since the last solve()
    double load = 0;                // bytes per second
    double limits = 0;              // lowest level of a flow that this link limits; zero if none
    double fastest = 0;             // upper bound of the levels of its flows
    // State during a solve: the load of flows that are not solved, the load of frozen flows, the
    // free capacity, the number and weight of rising flows, and the levels of frozen ones.
    double fixed = 0, filled = 0, room = 0, rising = 0;
    std::uint32_t solved = 0;
    double least_limited = 0, top = 0;
  };
  struct Next {
    double level;
    std::uint32_t id;
    bool is_link;
    bool operator<(const Next& other) const { return level > other.level; }
  };

  double capacity(LinkId link) const { return topology_.capacity(link).value(); }
  void add_to(LinkId link, FlowId id, std::uint32_t position);
  void become_narrow(Carrier& carrier, LinkId link);
  void become_wide(Carrier& carrier);
  void touch(LinkId link, std::int64_t weight);
  void join(FlowId id);
  void start();
  bool raise_sole();
  void prepare();
  void fill();
  void raise_together();
  void raise_by_heap();
  void freeze_all(double level, double reached);
  bool is_full_for(FlowId id, double reached);
  void freeze(FlowId id, double level, LinkId limit);
  bool spread();
  void spread_over(Carrier& carrier, LinkId link);
  void look_at_all(Carrier& carrier, LinkId link, bool full);
  void settle_links();
  void join_connected();
  static std::uint64_t bit_of(std::uint32_t position) {
    return std::uint64_t{1} << std::min(position, last_bit);
  }
  // Calls visit(carrier, link) for the narrow links of a flow until it returns true.
  template <typename Visit>
  bool any_narrow(const Flow& flow, const Visit& visit) {
    for (std::uint64_t bits = flow.narrow; bits != 0; bits &= bits - 1) {
      auto i = static_cast<std::uint32_t>(std::countr_zero(bits));
      const std::size_t end = i < last_bit ? i + 1 : flow.links.size();
      for (; i < end; ++i)
        if (carriers_[flow.links[i]].narrow && visit(carriers_[flow.links[i]], flow.links[i]))
          return true;
    }
    return false;
  }
  template <typename Visit>
  void each_narrow(const Flow& flow, const Visit& visit) {
    any_narrow(flow, [&](Carrier& carrier, LinkId link) {
      visit(carrier, link);
      return false;
    });
  }
  template <typename Visit>
  void each_on(const Carrier& carrier, const Visit& visit) const {
    for (const On& on : carrier.flows)
      if (flows_[on.flow].reused == on.reused) visit(on.flow, flows_[on.flow]);
  }

  const Topology& topology_;
  std::vector<Flow> flows_;
  std::vector<FlowId> free_;
  std::vector<Carrier> carriers_;  // indexed by link; empty until the first flow is added
  std::vector<LinkId> touched_;
  std::vector<FlowId> added_;
  std::vector<FlowId> solved_;  // flows solved together, later the flows that changed
  std::vector<FlowId> rising_, full_;
  std::vector<LinkId> used_;
  std::vector<Next> heap_;
  // The link that limited all solved flows at the last solve(), if these are all its flows, with
  // their weight and the lowest of their ceilings; else at_ceiling.
  LinkId sole_ = at_ceiling;
  double sole_weight_ = 0, sole_ceiling_ = 0;
};

}  // namespace lambcast
