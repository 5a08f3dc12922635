#include "sim/network/max_min.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/check.h"
#include "sim/network/effort.h"

namespace lambcast {
namespace {

// Links and flows within rounding of a level count as being at that level.
constexpr double rounding = 1e-12, apart = 1e-11;
constexpr int most_passes = 3, most_spreads = 12;
constexpr double unlimited = std::numeric_limits<double>::infinity();

}  // namespace

MaxMin::FlowId MaxMin::add(std::span<const LinkId> links, std::uint32_t weight, double ceiling) {
  if (carriers_.empty()) carriers_.resize(topology_.links().size());
  if (free_.empty()) {
    free_.push_back(static_cast<FlowId>(flows_.size()));
    flows_.emplace_back();
  }
  const FlowId id = free_.back();
  free_.pop_back();
  Flow& flow = flows_[id];
  const std::uint32_t reused = flow.reused;
  flow = {links, ceiling / weight, 0, 0, at_ceiling, weight, 0, reused, State::fixed};
  for (std::uint32_t i = 0; i < links.size(); ++i) add_to(links[i], id, i);
  sole_ = at_ceiling;
  added_.push_back(id);
  return id;
}

void MaxMin::add_to(LinkId link, FlowId id, std::uint32_t position) {
  Carrier& carrier = carriers_[link];
  Flow& flow = flows_[id];
  if (carrier.flows.size() > 32 + 2 * carrier.count)
    std::erase_if(carrier.flows, [&](const On& on) { return flows_[on.flow].reused != on.reused; });
  carrier.flows.push_back({id, flow.reused, position});
  ++carrier.count;
  carrier.ceilings += flow.ceiling * flow.weight;
  if (carrier.narrow)
    flow.narrow |= bit_of(position);
  else if (carrier.ceilings > capacity(link) * (1 + rounding))
    become_narrow(carrier, link);
  if (carrier.narrow) touch(link, flow.weight);
}

// Starts to track the load of a link.
void MaxMin::become_narrow(Carrier& carrier, LinkId link) {
  carrier.narrow = true;
  carrier.load = carrier.fastest = 0;
  carrier.limits = unlimited;
  for (const On& on : carrier.flows) {
    Flow& flow = flows_[on.flow];
    if (flow.reused != on.reused) continue;
    flow.narrow |= bit_of(on.position);
    carrier.load += rate(on.flow);
    carrier.fastest = std::max(carrier.fastest, flow.level);
    if (flow.limit == link) carrier.limits = std::min(carrier.limits, flow.level);
  }
  if (carrier.limits == unlimited) carrier.limits = 0;
}

void MaxMin::become_wide(Carrier& carrier) {
  carrier.narrow = false;
  for (const On& on : carrier.flows)
    if (flows_[on.flow].reused == on.reused && on.position < last_bit)
      flows_[on.flow].narrow &= ~bit_of(on.position);
}

void MaxMin::remove(FlowId id) {
  Flow& flow = flows_[id];
  if (flow.limit != sole_) sole_ = at_ceiling;
  sole_weight_ -= flow.weight;
  for (const LinkId link : flow.links) {
    Carrier& carrier = carriers_[link];
    if (--carrier.count == 0) {
      carrier.ceilings = 0;
      carrier.flows.clear();
    } else {
      carrier.ceilings -= flow.ceiling * flow.weight;
    }
    if (!carrier.narrow) continue;
    carrier.load -= rate(id);
    touch(link, -std::int64_t{flow.weight});
    // Hysteresis: a link becomes wide only well below its limit, since flows that end are often
    // followed by others.
    if (carrier.count < 2 || carrier.ceilings < capacity(link) / 2) become_wide(carrier);
  }
  if (flow.before == 0) std::erase(added_, id);  // the flow is not solved yet
  flow.state = State::gone;
  ++flow.reused;
  free_.push_back(id);
}

void MaxMin::touch(LinkId link, std::int64_t weight) {
  Carrier& carrier = carriers_[link];
  carrier.added_weight += weight;
  if (!carrier.touched) touched_.push_back(link);
  carrier.touched = true;
}

void MaxMin::join(FlowId id) {
  if (flows_[id].state != State::fixed) return;
  flows_[id].state = State::rising;
  solved_.push_back(id);
}

std::span<const MaxMin::FlowId> MaxMin::solve() {
  if (raise_sole()) return solved_;
  start();
  int spreads = 0;
  do {
    if (++spreads == most_spreads) join_connected();
    prepare();
    fill();
  } while (spread());
  settle_links();
  if (spreads > 1 || (sole_ != at_ceiling && !carriers_[sole_].all_solved)) sole_ = at_ceiling;
  for (const LinkId link : touched_) carriers_[link].touched = false;
  touched_.clear();
  added_.clear();
  std::erase_if(solved_, [&](FlowId id) {
    Flow& flow = flows_[id];
    flow.state = State::fixed;
    const bool same = std::abs(flow.level - flow.before) <= rounding * flow.before;
    (same ? flow.level : flow.before) = same ? flow.before : flow.level;
    return same;
  });
  return solved_;
}

// Solves the case that only flows of the sole limit have ended. Returns whether it is that case.
bool MaxMin::raise_sole() {
  if (sole_ == at_ceiling || carriers_[sole_].count == 0) return false;
  Carrier& sole = carriers_[sole_];
  const double level = capacity(sole_) / sole_weight_, factor = level / sole.limits;
  const auto load = [&](const Carrier& carrier) {
    return carrier.fixed + (carrier.load - carrier.fixed) * factor;
  };
  const auto is_too_full = [&](LinkId link) {
    const Carrier& carrier = carriers_[link];
    return carrier.narrow && link != sole_ && load(carrier) > capacity(link) * (1 + rounding);
  };
  const auto limits_others = [&](LinkId link) {
    const Carrier& carrier = carriers_[link];
    return carrier.narrow && !carrier.all_solved && carrier.limits > 0;
  };
  if (level >= sole_ceiling_ || std::ranges::any_of(used_, is_too_full) ||
      std::ranges::any_of(touched_, limits_others))
    return false;
  for (const LinkId link : used_) {
    Carrier& carrier = carriers_[link];
    carrier.load = load(carrier);
    carrier.fastest = carrier.all_solved ? level : std::max(carrier.fastest, level);
    if (carrier.all_solved && carrier.limits > 0) carrier.limits = level;
  }
  for (const LinkId link : touched_) {
    carriers_[link].touched = false;
    carriers_[link].added_weight = 0;
  }
  touched_.clear();
  solved_.clear();
  each_on(sole, [&](FlowId id, const Flow&) {
    flows_[id].level = flows_[id].before = level;
    solved_.push_back(id);
  });
  effort().filled += static_cast<std::int64_t>(solved_.size());
  return true;
}

void MaxMin::start() {
  solved_.clear();
  for (const LinkId link : touched_) {
    Carrier& carrier = carriers_[link];
    if (carrier.added_weight != 0 && carrier.limits > 0)
      each_on(carrier, [&](FlowId id, const Flow& flow) {
        if (flow.limit == link) join(id);
      });
    carrier.added_weight = 0;
  }
  for (const FlowId id : added_) join(id);
}

void MaxMin::prepare() {
  for (const LinkId link : used_) carriers_[link].used = false;
  used_.clear();
  for (const FlowId id : solved_) {
    Flow& flow = flows_[id];
    flow.state = State::rising;
    each_narrow(flow, [&](Carrier& carrier, LinkId link) {
      if (!carrier.used) {
        used_.push_back(link);
        carrier.used = true;
        carrier.fixed = carrier.load;
        carrier.filled = carrier.rising = carrier.top = 0;
        carrier.least_limited = unlimited;
        carrier.solved = 0;
      }
      carrier.fixed -= flow.before * flow.weight;
      carrier.rising += flow.weight;
      ++carrier.solved;
    });
  }
  for (const LinkId link : used_) {
    Carrier& carrier = carriers_[link];
    if (carrier.solved == carrier.count) carrier.fixed = 0;
    carrier.room = std::max(0.0, capacity(link) - carrier.fixed);
  }
}

void MaxMin::fill() {
  effort().filled += static_cast<std::int64_t>(solved_.size());
  sole_ = at_ceiling;
  rising_ = solved_;
  for (int pass = 0; pass < most_passes && !rising_.empty(); ++pass) raise_together();
  if (!rising_.empty()) raise_by_heap();
}

void MaxMin::raise_together() {
  double level = unlimited, lowest_ceiling = unlimited;
  LinkId narrowest = at_ceiling;
  for (const LinkId link : used_) {
    const Carrier& carrier = carriers_[link];
    if (carrier.rising == 0 || carrier.room >= level * carrier.rising) continue;
    level = carrier.room / carrier.rising;
    narrowest = link;
  }
  for (const FlowId id : rising_) lowest_ceiling = std::min(lowest_ceiling, flows_[id].ceiling);
  if (lowest_ceiling < level) {
    level = lowest_ceiling;
    narrowest = at_ceiling;
  }
  const double reached = level * (1 + rounding);
  const bool carries_all = narrowest != at_ceiling && rising_.size() == solved_.size() &&
                           carriers_[narrowest].solved == rising_.size();
  full_.clear();
  auto below = rising_.begin();
  for (const FlowId id : rising_) {
    if (carries_all) flows_[id].limit = narrowest;
    if (carries_all || is_full_for(id, reached))
      full_.push_back(id);
    else
      *below++ = id;
  }
  LAMBCAST_CHECK(!full_.empty(), "max-min filling made no progress at {} B/s", level);
  if (full_.size() == rising_.size()) {
    if (carries_all) {
      sole_ = narrowest;
      sole_weight_ = carriers_[narrowest].rising;
      sole_ceiling_ = lowest_ceiling;
    }
    freeze_all(level, reached);
    rising_.clear();
    return;
  }
  for (const FlowId id : full_) freeze(id, level, flows_[id].limit);
  rising_.erase(below, rising_.end());
}

void MaxMin::freeze_all(double level, double reached) {
  for (const FlowId id : full_) {
    flows_[id].state = State::frozen;
    flows_[id].level = level;
  }
  for (const LinkId link : used_) {
    Carrier& carrier = carriers_[link];
    if (carrier.rising == 0) continue;
    if (carrier.room <= reached * carrier.rising)
      carrier.least_limited = std::min(carrier.least_limited, level);
    carrier.filled += level * carrier.rising;
    carrier.top = std::max(carrier.top, level);
    carrier.rising = 0;
  }
}

// Returns whether a flow must freeze at a level, and stores its limit.
bool MaxMin::is_full_for(FlowId id, double reached) {
  Flow& flow = flows_[id];
  flow.limit = at_ceiling;
  return any_narrow(flow,
                    [&](const Carrier& carrier, LinkId link) {
                      if (carrier.room > reached * carrier.rising) return false;
                      flow.limit = link;
                      return true;
                    }) ||
         flow.ceiling <= reached;
}

void MaxMin::freeze(FlowId id, double level, LinkId limit) {
  Flow& flow = flows_[id];
  flow.state = State::frozen;
  flow.level = level;
  flow.limit = limit;
  each_narrow(flow, [&](Carrier& carrier, LinkId link) {
    carrier.room = std::max(0.0, carrier.room - level * flow.weight);
    carrier.filled += level * flow.weight;
    carrier.rising -= flow.weight;
    carrier.top = std::max(carrier.top, level);
    if (limit == link) carrier.least_limited = std::min(carrier.least_limited, level);
  });
}

void MaxMin::raise_by_heap() {
  heap_.clear();
  for (const LinkId link : used_)
    if (carriers_[link].rising > 0)
      heap_.push_back({carriers_[link].room / carriers_[link].rising, link, true});
  for (const FlowId id : rising_) heap_.push_back({flows_[id].ceiling, id, false});
  std::make_heap(heap_.begin(), heap_.end());
  std::size_t left = rising_.size();
  double level = 0;
  const auto frozen = [&](FlowId id, LinkId limit) {
    if (flows_[id].state != State::rising) return;
    freeze(id, level, limit);
    --left;
  };
  while (left > 0) {
    LAMBCAST_CHECK(!heap_.empty(), "max-min filling ends with {} flows left", left);
    std::pop_heap(heap_.begin(), heap_.end());
    Next next = heap_.back();
    heap_.pop_back();
    if (next.is_link) {
      const Carrier& carrier = carriers_[next.id];
      if (carrier.rising <= 0) continue;
      const double now = carrier.room / carrier.rising;
      if (now > next.level * (1 + rounding)) {
        next.level = now;
        heap_.push_back(next);
        std::push_heap(heap_.begin(), heap_.end());
        continue;
      }
    }
    if (next.level > level * (1 + rounding)) level = next.level;
    if (next.is_link)
      each_on(carriers_[next.id], [&](FlowId id, const Flow&) { frozen(id, next.id); });
    else
      frozen(next.id, at_ceiling);
  }
}

// Returns whether further flows must be solved.
bool MaxMin::spread() {
  const std::size_t before = solved_.size();
  for (const LinkId link : used_) spread_over(carriers_[link], link);
  for (const LinkId link : touched_) {
    Carrier& carrier = carriers_[link];
    if (carrier.used || !carrier.narrow || carrier.limits == 0) continue;
    look_at_all(carrier, link, carrier.load >= capacity(link) * (1 - apart));
  }
  return solved_.size() > before;
}

void MaxMin::spread_over(Carrier& carrier, LinkId link) {
  if (carrier.solved == carrier.count) return;
  const bool full = carrier.fixed + carrier.filled >= capacity(link) * (1 - apart);
  const bool still_limits =
      carrier.limits == 0 || (full && carrier.top <= carrier.limits * (1 + apart));
  if (still_limits && carrier.fastest <= carrier.least_limited * (1 + apart)) return;
  look_at_all(carrier, link, full);
}

// Visits the unsolved flows of a link.
void MaxMin::look_at_all(Carrier& carrier, LinkId link, bool full) {
  double fastest = 0;
  carrier.fastest = 0;
  carrier.limits = unlimited;
  each_on(carrier, [&](FlowId, const Flow& flow) {
    fastest = std::max(fastest, flow.level);
    if (flow.state != State::fixed) return;
    carrier.fastest = std::max(carrier.fastest, flow.level);
    if (flow.limit == link) carrier.limits = std::min(carrier.limits, flow.level);
  });
  if (carrier.limits == unlimited) carrier.limits = 0;
  const double least = carrier.used ? carrier.least_limited : unlimited;
  each_on(carrier, [&](FlowId id, const Flow& flow) {
    const bool limits = full && fastest <= flow.level * (1 + apart);
    if ((flow.limit == link && !limits) || flow.level > least * (1 + apart)) join(id);
  });
}

// Stores the new loads of the links.
void MaxMin::settle_links() {
  for (const LinkId link : used_) {
    Carrier& carrier = carriers_[link];
    const bool all = carrier.solved == carrier.count, limited = carrier.least_limited < unlimited;
    carrier.all_solved = all;
    carrier.load = carrier.fixed + carrier.filled;
    carrier.fastest = all ? carrier.top : std::max(carrier.fastest, carrier.top);
    if (all || carrier.limits == 0)
      carrier.limits = limited ? carrier.least_limited : 0;
    else if (limited)
      carrier.limits = std::min(carrier.limits, carrier.least_limited);
  }
}

// Adds all flows that share links with a solved one, transitively.
void MaxMin::join_connected() {
  for (std::size_t i = 0; i < solved_.size(); ++i)
    each_narrow(flows_[solved_[i]], [&](const Carrier& carrier, LinkId) {
      each_on(carrier, [&](FlowId id, const Flow&) { join(id); });
    });
}

double MaxMin::rate_on(LinkId link) const {
  double sum = 0;
  if (carriers_.empty()) return sum;
  each_on(carriers_[link], [&](FlowId id, const Flow&) { sum += rate(id); });
  return sum;
}

}  // namespace lambcast
