// The fluid model: every flow moves at its max-min fair rate.
//
// Rates follow from progressive filling: raise all rates together until a link is full or a flow
// meets its cap, freeze the flows concerned, go on with the rest. Three things keep that cheap:
//
//   groups      the flows of a set, joined with those of every set that they met on a link. Only
//               the group in which a flow begins or ends is looked at; where no link is shared,
//               nothing is solved (the rate is that of the narrowest link).
//   queue       of the next end in each group.
//   memory      what a set took that had the network to itself from begin to end, where its shares
//               do not tell at once (fair_share.h). It takes the same again, to the picosecond, so
//               repeated rounds cost one event each. If another set begins meanwhile, the one under
//               way is made up for, flow by flow.
#pragma once

#include <map>
#include <set>

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
  using GroupId = std::uint32_t;

  struct Active {
    std::span<const LinkId> links;
    std::uint32_t weight;
    SetId set;
    double remaining;  // bytes, at `updated`
    double rate;       // bytes per second
    double cap;        // bytes per second, 0 for none
    SimTime updated;   // when `remaining` was true
    SimTime end;       // at the present rate
  };
  struct Set {
    Ticket ticket;
    std::uint64_t begun;  // the how manieth
    std::size_t flows_left;
  };
  struct Group {
    std::vector<Active> flows;  // in the order they began
    std::vector<GroupId> joined;
    SimTime next_end;
    bool stale = false;  // flows that share links began or ended since rates were found
  };
  // A set on its own in the network, known or yet to be: when it began, and what it took.
  struct Alone {
    Ticket ticket;
    const FlowSet* flows;
    std::int64_t times;
    SimTime began;
    std::optional<SimTime> end;  // remembered; no flow of it is in a group then
  };

  void follow_links();
  void move_clock(SimTime now);
  // Whether there was something to move.
  bool begin(Ticket ticket, const FlowSet& flows, std::int64_t times);
  std::optional<Duration> known_alone(const FlowSet& flows, std::int64_t times);
  void make_up_for(const Alone& alone, SimTime now);
  GroupId group_on(LinkId link);
  GroupId join(GroupId into, GroupId from);
  void end_flows(GroupId id);
  void finish_sets(std::vector<Ticket>& finished);
  // Brings rates and ends up to date in groups that are stale.
  void settle();
  void solve(std::vector<Active>& flows);

  const Topology& topology_;
  SimTime now_;
  std::vector<Set> sets_;
  std::vector<SetId> free_sets_;
  std::vector<SetId> ended_sets_;  // in this instant
  std::uint64_t begun_ = 0;
  std::vector<Ticket> empty_sets_;  // started with nothing to move
  std::vector<Group> groups_;
  std::vector<GroupId> joined_to_;  // itself where it was not joined to another
  std::vector<GroupId> free_groups_;
  std::vector<GroupId> stale_;
  std::set<std::pair<SimTime, GroupId>> ends_;  // of groups that are not stale
  std::vector<std::uint32_t> flows_on_;         // per link; empty until a flow is followed
  std::vector<GroupId> group_on_;               // per link in use
  std::optional<Alone> alone_;
  std::map<std::pair<const FlowSet*, std::int64_t>, std::optional<Duration>> known_;
  // Scratch of solve(): per link, the links in use, and the flows that may rise further.
  std::vector<double> room_;
  std::vector<std::uint32_t> unfrozen_;
  std::vector<LinkId> used_;
  std::vector<Active*> rising_;
};

}  // namespace lambcast
