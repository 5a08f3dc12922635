#include "sim/network/flow_network.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/check.h"
#include "sim/network/effort.h"
#include "sim/network/fair_share.h"

namespace lambcast {
namespace {

// The time is rounded up, so that a flow never ends before its last byte.
Duration time_for(double bytes, double rate) {
  const double ps = bytes / rate * 1e12;
  if (ps >= 9.2e18) return Duration::seconds(ps * 1e-12);  // throws: the bytes are the user's
  const auto whole = static_cast<std::int64_t>(ps);
  return Duration::picoseconds(whole < ps ? whole + 1 : whole);
}

// Returns a free index of a vector, or extends the vector.
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

FlowNetwork::FlowNetwork(const Topology& topology) : topology_(topology), rates_(topology) {}

void FlowNetwork::start(Ticket ticket, const FlowSet& flows, std::int64_t times, SimTime now) {
  const bool idle = !alone_ && moving_ == 0 && empty_sets_.empty();
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

// Returns the remembered time of the set, or the time that follows from its shares without
// simulation.
std::optional<Duration> FlowNetwork::known_alone(const FlowSet& flows, std::int64_t times) {
  const auto [known, is_new] = known_.try_emplace({&flows, times});
  if (is_new) {
    const LastFlow last = last_flow(flows, topology_);
    const double bytes = last.bytes.value() * static_cast<double>(times);
    if (last.max_min) known->second = bytes > 0 ? time_for(bytes, last.share.value()) : Duration();
  }
  return known->second;
}

// Simulates the flows of `alone` from their start up to `now`.
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
  const SetId set = take(free_sets_, sets_);
  sets_[set] = {ticket, begun_, 0};
  const LinkLists& paths = flows.paths->links();
  flows.each([&](const Flow& flow, std::size_t path) {
    if (flow.bytes.value() == 0) return;
    const std::span<const LinkId> links = paths.of(path);
    double ceiling = flow.cap.value();
    for (const LinkId link : links) {
      const double capacity = topology_.capacity(link).value();
      if (ceiling == 0 || capacity < ceiling) ceiling = capacity;
    }
    if (ceiling == 0) return;  // neither links nor a cap: the flow takes no time
    const FlowId id = rates_.add(links, flow.weight, ceiling);
    if (id >= flows_.size()) flows_.resize(id + 1);
    Active& active = flows_[id];
    active = {set, active.queued, flow.bytes.value() * static_cast<double>(times), 0, now_, true};
    ++sets_[set].flows_left;
  });
  moving_ += sets_[set].flows_left;
  if (sets_[set].flows_left > 0) {
    ++begun_;
    return true;
  }
  empty_sets_.push_back(ticket);
  free_sets_.push_back(set);
  return false;
}

std::optional<SimTime> FlowNetwork::next_event() {
  if (!empty_sets_.empty()) return now_;
  if (alone_ && alone_->end) return alone_->end;
  settle();
  if (ends_.empty()) return std::nullopt;
  return ends_.front().at;
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
  while (!ends_.empty() && (!holds(ends_.front()) || ends_.front().at <= now)) {
    const End end = ends_.front();
    std::pop_heap(ends_.begin(), ends_.end());
    ends_.pop_back();
    if (holds(end)) end_flow(end.flow);
  }
  finish_sets(finished);
}

bool FlowNetwork::holds(const End& end) const {
  return flows_[end.flow].moves && flows_[end.flow].queued == end.queued;
}

void FlowNetwork::end_flow(FlowId id) {
  Active& flow = flows_[id];
  flow.moves = false;
  rates_.remove(id);
  --moving_;
  if (--sets_[flow.set].flows_left == 0) ended_sets_.push_back(flow.set);
}

// Sets finish in the order in which they began, so that tickets have the same order in every run.
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
  if (!rates_.changed()) return;
  ++effort().solves;
  const std::span<const FlowId> changed = rates_.solve();
  if (changed.size() == moving_) ends_.clear();  // all are outdated
  const auto queued = static_cast<std::ptrdiff_t>(ends_.size());
  for (const FlowId id : changed) queue_end(id);
  // Outdated ends are removed once there are many.
  if (changed.size() > moving_ / 8 || ends_.size() > 64 + 2 * moving_) {
    std::erase_if(ends_, [&](const End& end) { return !holds(end); });
    std::make_heap(ends_.begin(), ends_.end());
    return;
  }
  for (auto last = ends_.begin() + queued; last != ends_.end();)
    std::push_heap(ends_.begin(), ++last);
  while (!ends_.empty() && !holds(ends_.front())) {
    std::pop_heap(ends_.begin(), ends_.end());
    ends_.pop_back();
  }
}

// Queues the end of a flow at its new rate.
void FlowNetwork::queue_end(FlowId id) {
  Active& flow = flows_[id];
  flow.remaining = std::max(0.0, flow.remaining - flow.rate * (now_ - flow.updated).s());
  flow.updated = now_;
  flow.rate = rates_.rate(id);
  ends_.push_back({now_ + time_for(flow.remaining, flow.rate), id, ++flow.queued});
}

Bandwidth FlowNetwork::rate_on(LinkId link) {
  if (alone_ && alone_->end) {
    const Alone before = *alone_;
    alone_.reset();
    make_up_for(before, now_);
  }
  settle();
  return Bandwidth(rates_.rate_on(link));
}

}  // namespace lambcast
