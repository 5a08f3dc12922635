#include "sim/network/flow_network.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/check.h"
#include "sim/network/effort.h"
#include "sim/network/fair_share.h"

namespace lambcast {
namespace {

const SimTime latest = SimTime::at(Duration::picoseconds(std::numeric_limits<std::int64_t>::max()));

// Rounded up, so that a flow never ends before its last byte.
Duration time_for(double bytes, double rate) {
  const double ps = std::ceil(bytes / rate * 1e12);
  if (ps >= 9.2e18) return Duration::seconds(ps * 1e-12);  // refuses it: the user's bytes and rate
  return Duration::picoseconds(static_cast<std::int64_t>(ps));
}

// A free place of a vector whose elements are named by number.
template <typename Id, typename Element>
Id take(std::vector<Id>& free, std::vector<Element>& all) {
  if (free.empty()) {
    all.emplace_back();
    return static_cast<Id>(all.size() - 1);
  }
  const Id id = free.back();
  free.pop_back();
  return id;
}

}  // namespace

FlowNetwork::FlowNetwork(const Topology& topology) : topology_(topology) {}

// A network whose sets are all known looks at no link, and a machine has hundreds of thousands.
void FlowNetwork::follow_links() {
  const std::size_t links = topology_.links().size();
  flows_on_.resize(links);
  group_on_.resize(links);
  room_.resize(links);
  unfrozen_.resize(links);
}

void FlowNetwork::start(Ticket ticket, const FlowSet& flows, std::int64_t times, SimTime now) {
  const bool idle = !alone_ && free_groups_.size() == groups_.size() && empty_sets_.empty();
  if (alone_) {
    const Alone before = *alone_;
    alone_.reset();
    if (before.end) make_up_for(before, now);
  }
  move_clock(now);
  if (idle) {
    alone_ = {ticket, &flows, times, now, std::nullopt};
    if (const auto known = known_alone(flows, times)) {
      alone_->end = now + *known;
      return;
    }
  }
  if (!begin(ticket, flows, times)) alone_.reset();
}

// What was remembered, or follows from the shares alone.
std::optional<Duration> FlowNetwork::known_alone(const FlowSet& flows, std::int64_t times) {
  const auto [known, is_new] = known_.try_emplace({&flows, times});
  if (is_new) {
    const LastFlow last = last_flow(flows, topology_);
    if (last.max_min)
      known->second = time_for(last.bytes.value() * static_cast<double>(times), last.share.value());
  }
  return known->second;
}

// As if its flows had been followed from the start.
void FlowNetwork::make_up_for(const Alone& alone, SimTime now) {
  const SimTime moved_to = now_;
  now_ = alone.began;
  begin(alone.ticket, *alone.flows, alone.times);
  std::vector<Ticket> finished;
  while (const auto next = next_event()) {
    if (*next >= now) break;
    advance(*next, finished);
  }
  LAMBCAST_CHECK(finished.empty(), "a remembered set took less than before");
  now_ = std::max(now_, moved_to);
}

bool FlowNetwork::begin(Ticket ticket, const FlowSet& flows, std::int64_t times) {
  if (flows_on_.empty()) follow_links();
  const SetId set = take(free_sets_, sets_);
  const GroupId id = take(free_groups_, groups_);
  joined_to_.resize(groups_.size());
  joined_to_[id] = id;
  std::vector<GroupId> met;
  Group& group = groups_[id];
  group.next_end = latest;
  group.flows.reserve(flows.size());
  const LinkLists& paths = flows.paths->links();
  flows.each([&](const Flow& flow, std::size_t path) {
    if (flow.bytes.value() == 0) return;
    const std::span<const LinkId> links = paths.of(path);
    double rate = flow.cap.value();
    for (const LinkId link : links) {
      if (++flows_on_[link] == 1) {
        group_on_[link] = id;
      } else {
        group.stale = true;
        if (const GroupId other = group_on(link); other != id) met.push_back(other);
      }
      const double capacity = topology_.capacity(link).value();
      if (rate == 0 || capacity < rate) rate = capacity;
    }
    if (rate == 0) return;  // neither links nor a cap: nothing to wait for
    const double bytes = flow.bytes.value() * static_cast<double>(times);
    const SimTime end = now_ + time_for(bytes, rate);
    group.next_end = std::min(group.next_end, end);
    group.flows.push_back({links, flow.weight, set, bytes, rate, flow.cap.value(), now_, end});
  });
  if (group.flows.empty()) {
    empty_sets_.push_back(ticket);
    free_sets_.push_back(set);
    free_groups_.push_back(id);
    return false;
  }
  sets_[set].ticket = ticket;
  sets_[set].begun = begun_++;
  sets_[set].flows_left = group.flows.size();
  if (group.stale)
    stale_.push_back(id);
  else
    ends_.insert({group.next_end, id});
  std::sort(met.begin(), met.end());
  met.erase(std::unique(met.begin(), met.end()), met.end());
  GroupId all = id;
  for (const GroupId other : met) all = join(all, other);
  return true;
}

FlowNetwork::GroupId FlowNetwork::group_on(LinkId link) {
  GroupId id = group_on_[link];
  while (joined_to_[id] != id) id = joined_to_[id] = joined_to_[joined_to_[id]];
  return group_on_[link] = id;
}

// The smaller joins the larger, whose name both bear then.
FlowNetwork::GroupId FlowNetwork::join(GroupId into, GroupId from) {
  if (groups_[into].flows.size() < groups_[from].flows.size()) std::swap(into, from);
  Group& group = groups_[into];
  Group& other = groups_[from];
  if (!other.stale) ends_.erase({other.next_end, from});
  if (!group.stale) {
    ends_.erase({group.next_end, into});
    group.stale = true;
    stale_.push_back(into);
  }
  const auto before = [&](const Active& a, const Active& b) {
    return sets_[a.set].begun < sets_[b.set].begun;
  };
  const auto middle = static_cast<std::ptrdiff_t>(group.flows.size());
  group.flows.insert(group.flows.end(), other.flows.begin(), other.flows.end());
  if (before(other.flows.front(), group.flows[static_cast<std::size_t>(middle) - 1]))
    std::inplace_merge(group.flows.begin(), group.flows.begin() + middle, group.flows.end(),
                       before);
  other.flows.clear();
  other.stale = false;
  joined_to_[from] = into;
  group.joined.push_back(from);
  group.joined.insert(group.joined.end(), other.joined.begin(), other.joined.end());
  other.joined.clear();
  return into;
}

std::optional<SimTime> FlowNetwork::next_event() {
  if (!empty_sets_.empty()) return now_;
  if (alone_ && alone_->end) return alone_->end;
  settle();
  if (ends_.empty()) return std::nullopt;
  return ends_.begin()->first;
}

void FlowNetwork::advance(SimTime now, std::vector<Ticket>& finished) {
  finished.insert(finished.end(), empty_sets_.begin(), empty_sets_.end());
  empty_sets_.clear();
  settle();
  move_clock(now);
  if (alone_ && alone_->end) {
    if (*alone_->end > now) return;
    finished.push_back(alone_->ticket);
    alone_.reset();
    return;
  }
  while (!ends_.empty() && ends_.begin()->first <= now) end_flows(ends_.begin()->second);
  finish_sets(finished);
}

void FlowNetwork::end_flows(GroupId id) {
  Group& group = groups_[id];
  ends_.erase(ends_.begin());
  SimTime next = latest;
  std::size_t kept = 0;
  for (Active& flow : group.flows) {
    if (flow.end > now_) {
      next = std::min(next, flow.end);
      group.flows[kept++] = flow;
      continue;
    }
    for (const LinkId link : flow.links)
      if (--flows_on_[link] > 0) group.stale = true;
    if (--sets_[flow.set].flows_left == 0) ended_sets_.push_back(flow.set);
  }
  group.flows.resize(kept);
  group.next_end = next;
  if (kept == 0) {
    group.stale = false;
    free_groups_.insert(free_groups_.end(), group.joined.begin(), group.joined.end());
    group.joined.clear();
    free_groups_.push_back(id);
  } else if (group.stale) {
    stale_.push_back(id);
  } else {
    ends_.insert({next, id});
  }
}

// In the order they began, so that tickets come out the same in every run.
void FlowNetwork::finish_sets(std::vector<Ticket>& finished) {
  std::sort(ended_sets_.begin(), ended_sets_.end(),
            [&](SetId a, SetId b) { return sets_[a].begun < sets_[b].begun; });
  for (const SetId set : ended_sets_) {
    finished.push_back(sets_[set].ticket);
    free_sets_.push_back(set);
  }
  if (alone_ && !ended_sets_.empty()) {
    known_[{alone_->flows, alone_->times}] = now_ - alone_->began;
    alone_.reset();
  }
  ended_sets_.clear();
}

void FlowNetwork::move_clock(SimTime now) {
  LAMBCAST_CHECK(now >= now_, "the network cannot go back in time");
  now_ = now;
}

void FlowNetwork::settle() {
  for (const GroupId id : stale_) {
    Group& group = groups_[id];
    if (!group.stale) continue;  // joined to another since, or listed twice
    for (Active& flow : group.flows) {
      flow.remaining = std::max(0.0, flow.remaining - flow.rate * (now_ - flow.updated).s());
      flow.updated = now_;
    }
    ++effort().solves;
    solve(group.flows);
    group.next_end = latest;
    for (Active& flow : group.flows) {
      flow.end = now_ + time_for(flow.remaining, flow.rate);
      group.next_end = std::min(group.next_end, flow.end);
    }
    group.stale = false;
    ends_.insert({group.next_end, id});
  }
  stale_.clear();
}

void FlowNetwork::solve(std::vector<Active>& flows) {
  used_.clear();
  rising_.clear();
  for (Active& flow : flows) {
    rising_.push_back(&flow);
    for (const LinkId link : flow.links) {
      if (unfrozen_[link] == 0) {
        used_.push_back(link);
        room_[link] = topology_.capacity(link).value();
      }
      unfrozen_[link] += flow.weight;
    }
  }
  const auto fills = [&](const Active& flow, double reached) {
    if (flow.cap > 0 && flow.cap <= reached * flow.weight) return true;
    return std::any_of(flow.links.begin(), flow.links.end(),
                       [&](LinkId link) { return room_[link] <= reached * unfrozen_[link]; });
  };
  while (!rising_.empty()) {
    double level = std::numeric_limits<double>::infinity();
    std::erase_if(used_, [&](LinkId link) { return unfrozen_[link] == 0; });
    for (const LinkId link : used_) {
      // Most links carry one flow, and a division takes longer than the rest.
      const double room = room_[link];
      level = std::min(level, unfrozen_[link] == 1 ? room : room / unfrozen_[link]);
    }
    for (const Active* flow : rising_)
      if (flow->cap > 0) level = std::min(level, flow->cap / flow->weight);
    // Links within rounding of the level fill in the same pass.
    const double reached = level * (1 + 1e-12);
    if (std::ranges::all_of(rising_, [&](const Active* flow) { return fills(*flow, reached); })) {
      for (Active* flow : rising_) flow->rate = level * flow->weight;
      for (const LinkId link : used_) unfrozen_[link] = 0;
      return;
    }
    const auto full = std::stable_partition(
        rising_.begin(), rising_.end(), [&](const Active* flow) { return !fills(*flow, reached); });
    LAMBCAST_CHECK(full != rising_.end(), "max-min filling made no progress at {} B/s", level);
    for (auto flow = full; flow != rising_.end(); ++flow) {
      (*flow)->rate = level * (*flow)->weight;
      for (const LinkId link : (*flow)->links) {
        room_[link] -= (*flow)->rate;
        unfrozen_[link] -= (*flow)->weight;
      }
    }
    rising_.erase(full, rising_.end());
  }
}

Bandwidth FlowNetwork::rate_on(LinkId link) {
  if (alone_ && alone_->end) {
    const Alone before = *alone_;
    alone_.reset();
    make_up_for(before, now_);
  }
  settle();
  double sum = 0;
  if (flows_on_.empty() || flows_on_[link] == 0) return Bandwidth(sum);
  for (const Active& flow : groups_[group_on(link)].flows)
    for (const LinkId on : flow.links)
      if (on == link) sum += flow.rate;
  return Bandwidth(sum);
}

}  // namespace lambcast
