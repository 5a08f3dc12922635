#include "sim/network/flow_network.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/check.h"

namespace lambcast {
namespace {

const SimTime latest = SimTime::at(Duration::picoseconds(std::numeric_limits<std::int64_t>::max()));

// Rounded up, so that a flow never ends before its last byte.
Duration time_for(double bytes, double rate) {
  const double ps = std::ceil(bytes / rate * 1e12);
  LAMBCAST_CHECK(ps < 9.2e18, "{} bytes at {} B/s outlast the simulated clock", bytes, rate);
  return Duration::picoseconds(static_cast<std::int64_t>(ps));
}

}  // namespace

FlowNetwork::FlowNetwork(const Topology& topology)
    : topology_(topology),
      flows_on_(topology.links().size()),
      room_(topology.links().size()),
      unfrozen_(topology.links().size()) {}

void FlowNetwork::start(Ticket ticket, const FlowSet& flows, std::int64_t times, SimTime now) {
  move_clock(now);
  std::uint32_t moving = 0;
  const auto set =
      free_sets_.empty() ? static_cast<std::uint32_t>(sets_.size()) : free_sets_.back();
  for (const Flow& flow : flows.flows) {
    if (flow.bytes.value() == 0) continue;
    const LinkId* links = flows.links->data() + flow.first_link;
    double rate = flow.cap.value();
    for (std::uint32_t i = 0; i < flow.link_count; ++i) {
      if (++flows_on_[links[i]] > 1) rates_stale_ = true;
      const double capacity = topology_.capacity(links[i]).value();
      if (rate == 0 || capacity < rate) rate = capacity;
    }
    if (rate == 0) continue;  // neither links nor a cap: nothing to wait for
    const double bytes = flow.bytes.value() * static_cast<double>(times);
    const SimTime end = now + time_for(bytes, rate);
    if (active_.empty() || end < next_end_) next_end_ = end;
    active_.push_back(
        {links, flow.link_count, flow.weight, set, bytes, rate, flow.cap.value(), now, end});
    ++moving;
  }
  if (moving == 0) {
    empty_sets_.push_back(ticket);
    return;
  }
  if (free_sets_.empty()) {
    sets_.push_back({ticket, moving});
  } else {
    free_sets_.pop_back();
    sets_[set] = {ticket, moving};
  }
}

std::optional<SimTime> FlowNetwork::next_event() {
  if (!empty_sets_.empty()) return now_;
  if (active_.empty()) return std::nullopt;
  settle();
  return next_end_;
}

void FlowNetwork::advance(SimTime now, std::vector<Ticket>& finished) {
  finished.insert(finished.end(), empty_sets_.begin(), empty_sets_.end());
  empty_sets_.clear();
  if (!active_.empty()) settle();
  move_clock(now);
  if (active_.empty() || next_end_ > now) return;
  // Ends in order of start, so that tickets come out the same in every run.
  SimTime next = latest;
  std::size_t kept = 0;
  for (Active& flow : active_) {
    if (flow.end > now) {
      next = std::min(next, flow.end);
      active_[kept++] = flow;
      continue;
    }
    for (std::uint32_t i = 0; i < flow.link_count; ++i)
      if (--flows_on_[flow.links[i]] > 0) rates_stale_ = true;
    Set& set = sets_[flow.set];
    if (--set.flows_left == 0) {
      finished.push_back(set.ticket);
      free_sets_.push_back(flow.set);
    }
  }
  active_.resize(kept);
  next_end_ = next;
}

void FlowNetwork::move_clock(SimTime now) {
  LAMBCAST_CHECK(now >= now_, "the network cannot go back in time");
  now_ = now;
}

void FlowNetwork::settle() {
  if (!rates_stale_) return;
  for (Active& flow : active_) {
    flow.remaining = std::max(0.0, flow.remaining - flow.rate * (now_ - flow.updated).s());
    flow.updated = now_;
  }
  solve();
  next_end_ = latest;
  for (Active& flow : active_) {
    flow.end = now_ + time_for(flow.remaining, flow.rate);
    next_end_ = std::min(next_end_, flow.end);
  }
  rates_stale_ = false;
}

void FlowNetwork::solve() {
  used_.clear();
  for (const Active& flow : active_) {
    for (std::uint32_t i = 0; i < flow.link_count; ++i) {
      const LinkId link = flow.links[i];
      if (unfrozen_[link] == 0) {
        used_.push_back(link);
        room_[link] = topology_.capacity(link).value();
      }
      unfrozen_[link] += flow.weight;
    }
  }
  for (Active& flow : active_) flow.rate = -1;
  for (std::size_t frozen = 0; frozen < active_.size();) {
    double level = std::numeric_limits<double>::infinity();
    for (const LinkId link : used_)
      if (unfrozen_[link] > 0) level = std::min(level, room_[link] / unfrozen_[link]);
    for (const Active& flow : active_)
      if (flow.rate < 0 && flow.cap > 0) level = std::min(level, flow.cap / flow.weight);
    // Links within rounding of the level fill in the same pass.
    const double reached = level * (1 + 1e-12);
    const std::size_t before = frozen;
    for (Active& flow : active_) {
      if (flow.rate >= 0) continue;
      bool full = flow.cap > 0 && flow.cap <= reached * flow.weight;
      for (std::uint32_t i = 0; i < flow.link_count && !full; ++i) {
        const LinkId link = flow.links[i];
        full = room_[link] <= reached * unfrozen_[link];
      }
      if (full) flow.rate = -2;
    }
    for (Active& flow : active_) {
      if (flow.rate != -2) continue;
      flow.rate = level * flow.weight;
      ++frozen;
      for (std::uint32_t i = 0; i < flow.link_count; ++i) {
        room_[flow.links[i]] -= flow.rate;
        unfrozen_[flow.links[i]] -= flow.weight;
      }
    }
    LAMBCAST_CHECK(frozen > before, "max-min filling made no progress at {} B/s", level);
  }
  for (const LinkId link : used_) unfrozen_[link] = 0;
}

Bandwidth FlowNetwork::rate_on(LinkId link) {
  settle();
  double sum = 0;
  for (const Active& flow : active_)
    for (std::uint32_t i = 0; i < flow.link_count; ++i)
      if (flow.links[i] == link) sum += flow.rate;
  return Bandwidth(sum);
}

}  // namespace lambcast
