// The fluid model: every flow moves at its max-min fair rate.
//
// Rates follow from progressive filling: raise all rates together until a link is full or a flow
// meets its cap, freeze the flows concerned, go on with the rest. A flow that shares no link with
// another needs no solving (its rate is its narrowest link), and the end of a flow disturbs only
// links that others still use; that keeps a ring over a thousand ranks at a few memory touches per
// flow instead of one solve per event.
#pragma once

#include "sim/network/network.h"

namespace lambcast {

class FlowNetwork final : public Network {
 public:
  explicit FlowNetwork(const Topology& topology);
  void start(Ticket ticket, const FlowSet& flows, std::int64_t times, SimTime now) override;
  std::optional<SimTime> next_event() override;
  void advance(SimTime now, std::vector<Ticket>& finished) override;

  // Bytes per second on a link at this moment, for tests of conservation.
  Bandwidth rate_on(LinkId link);

 private:
  struct Active {
    const LinkId* links;
    std::uint32_t link_count;
    std::uint32_t weight;
    std::uint32_t set;  // index into sets_
    double remaining;   // bytes, at `updated`
    double rate;        // bytes per second
    double cap;         // bytes per second, 0 for none
    SimTime updated;    // when `remaining` was true
    SimTime end;        // at the present rate
  };
  struct Set {
    Ticket ticket;
    std::uint32_t flows_left;
  };

  void move_clock(SimTime now);
  // Brings rates and ends up to date after flows that share links began or ended.
  void settle();
  void solve();

  const Topology& topology_;
  SimTime now_;
  std::vector<Active> active_;
  std::vector<Set> sets_;
  std::vector<std::uint32_t> free_sets_;
  std::vector<Ticket> empty_sets_;       // started with nothing to move
  std::vector<std::uint32_t> flows_on_;  // per link
  bool rates_stale_ = false;
  SimTime next_end_;
  // Scratch of solve(), per link.
  std::vector<double> room_;
  std::vector<std::uint32_t> unfrozen_;
  std::vector<LinkId> used_;
};

}  // namespace lambcast
