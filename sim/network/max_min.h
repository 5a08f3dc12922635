// Max-min fair rates of flows that come and go (Bertsekas and Gallager, Data Networks, section
// 6.5.2), found anew for as few flows as a change affects.
//
// An allocation is max-min fair if every flow runs at its ceiling, or has a limit: a link that is
// full and on which no flow of the same weight is faster. So after a change only these are solved,
// with the rates of all others fixed:
//
//   at first   the flows that are new, and those whose limit has another load
//   then       flows whose limit is full no longer or has a faster flow, and flows that are faster
//              than one that a solved link limits; until there are none
//
// Flows that are solved together are filled progressively: all rates rise until a link is full or a
// flow meets its ceiling, these flows freeze, the others go on. A few levels are found by passes
// over all links and flows, the further ones by a heap of links.
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
  // `topology` must outlive it.
  explicit MaxMin(const Topology& topology) : topology_(topology) {}

  // `links` must outlive the flow and name none twice; `ceiling` is at most the capacity of each.
  FlowId add(std::span<const LinkId> links, std::uint32_t weight, double ceiling);
  void remove(FlowId id);

  // Whether flows came or went since the last solve().
  bool changed() const { return !touched_.empty() || !added_.empty(); }
  // Returns the flows whose rate is another now, valid until the next call.
  std::span<const FlowId> solve();
  // Bytes per second, as of the last solve().
  double rate(FlowId id) const { return flows_[id].level * flows_[id].weight; }
  double rate_on(LinkId link) const;

 private:
  enum class State : std::uint8_t { gone, fixed, rising, frozen };
  static constexpr LinkId at_ceiling = ~LinkId{0};
  static constexpr std::uint32_t last_bit = 63;

  struct Flow {
    std::span<const LinkId> links;
    double ceiling;  // per unit of weight, as levels are
    double level;
    double before;  // level at the last solve(), zero for a new flow
    LinkId limit;
    std::uint32_t weight;
    std::uint64_t narrow = 0;  // links, by position; the last bit is that of all further ones
    std::uint32_t reused = 0;  // tells apart the flows that have had this number
    State state = State::gone;
  };
  struct On {
    FlowId flow;
    std::uint32_t reused;
    std::uint32_t position;  // of the link among those of the flow
  };
  struct Carrier {
    std::vector<On> flows;  // some of which may be gone
    std::uint32_t count = 0;
    bool narrow = false;  // cannot carry all its flows at their ceilings; the others limit none
    bool touched = false, used = false;
    double ceilings = 0;            // bytes per second, of all flows
    std::int64_t added_weight = 0;  // since the last solve()
    double load = 0;                // bytes per second
    double limits = 0;              // the least level of flows that it limits; zero if none
    double fastest = 0;             // no flow has a higher level
    // While flows are solved: what the others load it with, what those that are frozen do, what is
    // left, the number and weight of flows that rise, the levels of those that froze.
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
  std::vector<Carrier> carriers_;  // by link; empty until a flow is added
  std::vector<LinkId> touched_;
  std::vector<FlowId> added_;
  std::vector<FlowId> solved_;  // those that are solved together, then those that changed
  std::vector<FlowId> rising_, full_;
  std::vector<LinkId> used_;
  std::vector<Next> heap_;
};

}  // namespace lambcast
