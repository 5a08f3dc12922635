// The fluid model: every flow moves at its max-min fair rate.
//
// Rates are solved anew only for the flows that a start or an end affects (max_min.h). Two more
// measures save time:
//
//   queue       a heap of the ends of flows. Flows with unchanged rates are not touched.
//   memory      the time of a set that had the network to itself, or the time that follows from its
//               shares (fair_share.h). The set takes the same time again, to the picosecond, so
//               repeated rounds cost one event each. If another set begins before its end, the
//               flows of the running set are replayed up to that instant.
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

  // Returns the current rate of a link in bytes per second, for tests of conservation.
  Bandwidth rate_on(LinkId link);

 private:
  using SetId = std::uint32_t;
  using FlowId = MaxMin::FlowId;

  struct Active {
    SetId set = 0;
    std::uint32_t queued = 0;  // number of queued ends; only the last one is valid
    double remaining = 0;      // bytes, at `updated`
    double rate = 0;           // bytes per second
    SimTime updated{};         // time at which `remaining` was computed
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
  // A set that has the network to itself: its start, and its end if known.
  struct Alone {
    Ticket ticket;
    const FlowSet* flows;
    std::int64_t times;
    SimTime began;
    std::optional<SimTime> end;  // known end; if set, the flows are not simulated
  };

  void move_clock(SimTime now);
  // Starts a set. Returns whether it has bytes to move.
  bool begin(Ticket ticket, const FlowSet& flows, std::int64_t times);
  std::optional<Duration> known_alone(const FlowSet& flows, std::int64_t times);
  void make_up_for(const Alone& alone, SimTime now);
  // Updates rates and ends of flows.
  void settle();
  void queue_end(FlowId id);
  bool holds(const End& end) const;
  void end_flow(FlowId id);
  void finish_sets(std::vector<Ticket>& finished);

  const Topology& topology_;
  SimTime now_;
  std::vector<Set> sets_;
  std::vector<SetId> free_sets_;
  std::vector<SetId> ended_sets_;  // sets that end at this instant
  std::uint64_t begun_ = 0;
  std::vector<Ticket> empty_sets_;  // sets without bytes to move
  MaxMin rates_;
  std::vector<Active> flows_;  // indexed by FlowId
  std::size_t moving_ = 0;     // number of flows in flight
  std::vector<End> ends_;      // a heap with the next end first
  std::optional<Alone> alone_;
  std::map<std::pair<const FlowSet*, std::int64_t>, std::optional<Duration>> known_;
};

}  // namespace lambcast
