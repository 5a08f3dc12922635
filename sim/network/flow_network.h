// The fluid model: every flow moves at its max-min fair rate.
//
// Rates are found anew for the flows that a begin or an end affects (max_min.h). Two things keep
// the rest cheap:
//
//   queue       the ends of flows in a heap. A flow whose rate did not change is not looked at.
//   memory      the time of a set that had the network to itself from begin to end, unless its
//               shares tell it at once (fair_share.h). It takes the same again, to the picosecond,
//               so repeated rounds cost one event each. If another set begins meanwhile, the flows
//               of the one under way are replayed.
#pragma once

#include <map>

#include "sim/network/max_min.h"
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
  using SetId = std::uint32_t;
  using FlowId = MaxMin::FlowId;

  struct Active {
    SetId set = 0;
    std::uint32_t queued = 0;  // times that its end was queued; the last one holds
    double remaining = 0;      // bytes, at `updated`
    double rate = 0;           // bytes per second
    SimTime updated{};         // when `remaining` was true
    bool moves = false;
  };
  struct Set {
    Ticket ticket;
    std::uint64_t begun;  // sequence number of the set
    std::size_t flows_left;
  };
  struct End {
    SimTime at;
    FlowId flow;
    std::uint32_t queued;
    bool operator<(const End& other) const { return at > other.at; }
  };
  // A set on its own in the network, known or yet to be: when it began, and what it took.
  struct Alone {
    Ticket ticket;
    const FlowSet* flows;
    std::int64_t times;
    SimTime began;
    std::optional<SimTime> end;  // remembered; its flows are not followed then
  };

  void move_clock(SimTime now);
  // Whether there was something to move.
  bool begin(Ticket ticket, const FlowSet& flows, std::int64_t times);
  std::optional<Duration> known_alone(const FlowSet& flows, std::int64_t times);
  void make_up_for(const Alone& alone, SimTime now);
  // Brings rates and ends up to date.
  void settle();
  void queue_end(FlowId id);
  bool holds(const End& end) const;
  void end_flow(FlowId id);
  void finish_sets(std::vector<Ticket>& finished);

  const Topology& topology_;
  SimTime now_;
  std::vector<Set> sets_;
  std::vector<SetId> free_sets_;
  std::vector<SetId> ended_sets_;  // in this instant
  std::uint64_t begun_ = 0;
  std::vector<Ticket> empty_sets_;  // started with nothing to move
  MaxMin rates_;
  std::vector<Active> flows_;  // by FlowId
  std::size_t moving_ = 0;     // flows
  std::vector<End> ends_;      // a heap, the next one first
  std::optional<Alone> alone_;
  std::map<std::pair<const FlowSet*, std::int64_t>, std::optional<Duration>> known_;
};

}  // namespace lambcast
