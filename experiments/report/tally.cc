#include "experiments/report/tally.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <sstream>
#include <utility>

#include "sim/base/sort_stably.h"

namespace lambcast::report {
namespace {

std::string without_numbers(const std::string& text) {
  std::string masked;
  for (const char c : text) {
    const bool digit = (c >= '0' && c <= '9') || c == '.';
    if (!digit) masked += c;
    if (digit && (masked.empty() || masked.back() != '#')) masked += '#';
  }
  return masked;
}

Speedup with_ends(double value, double low, double high) {
  return std::isnan(low) ? Speedup{value, value, value} : Speedup{value, low, high};
}

// Returns a copy of the row that is being counted, made once and shared by all that keep it.
const Kept& kept_of(const Point& p, Kept& kept) {
  if (!kept) kept = std::make_shared<const Point>(p);
  return kept;
}

// Returns the values at the sorted positions (n - 1) / 2 and n / 2; reorders `values`.
template <typename T>
std::pair<T, T> middle_of(std::deque<T>& values) {
  const auto place = [&](std::size_t i) { return values.begin() + static_cast<std::ptrdiff_t>(i); };
  const auto upper = place(values.size() / 2);
  std::nth_element(values.begin(), upper, values.end());
  return {values.size() % 2 == 1 ? *upper : *std::max_element(values.begin(), upper), *upper};
}

}  // namespace

Speedup speedup_of(const Point& p) { return with_ends(p.speedup, p.speedup_low, p.speedup_high); }

double compressed_share(const Point& p) {
  return std::isnan(p.warmup_steps) ? 1 : 1 - p.warmup_steps / p.steps;
}

bool is_sound(const Point& p) {
  return p.ok() && (!p.compressed() || (warm_up_of(p.freeze_step, p.steps) == WarmUp::usual &&
                                        !backend_fails(p.findings.text())));
}

void Tally::add(const Point& p) {
  ++counts_.points;
  if (!p.ok()) return add_reason(p);
  ++counts_.ran;
  counts_.work.add(p.samples_per_s * p.run_time_s, p.tokens_per_s * p.run_time_s);
  cost_sources_.add(p.cost_source);
  findings_.add(p.findings);
  Kept kept;
  add_shortest(p, kept);
  const auto rate = [](const Point& of) { return of.samples_per_s / of.gpus; };
  Kept &most = counts_.most_samples, &most_per_gpu = counts_.most_samples_per_gpu;
  if (!most || p.samples_per_s > most->samples_per_s) most = kept_of(p, kept);
  if (!most_per_gpu || rate(p) > rate(*most_per_gpu)) most_per_gpu = kept_of(p, kept);
  if (!counts_.best) group_of(p).samples_per_s.push_back(static_cast<float>(p.samples_per_s));
  if (!p.compressed()) return;
  if (std::ranges::find(compressed_, p.optimizer, &Compressed::optimizer) == compressed_.end())
    compressed_.push_back({p.optimizer, p.baseline});
  if (std::isfinite(p.speedup)) add_compared(p, kept);
}

void Tally::add_reason(const Point& p) {
  const auto [status, first] = reason_of_status_.try_emplace(p.status, 0);
  if (first) {
    const auto [reason, added] =
        reason_of_masked_.try_emplace(without_numbers(p.status), counts_.reasons.size());
    if (added) counts_.reasons.push_back({p.status, 0});
    status->second = reason->second;
  }
  ++counts_.reasons[status->second].count;
}

void Tally::add_shortest(const Point& p, Kept& kept) {
  const bool sound = is_sound(p);
  for (const EqualWork::Unit unit : EqualWork::units) {
    const double time_s = p.run_time_s * EqualWork::share(unit, p.samples_per_s * p.run_time_s,
                                                          p.tokens_per_s * p.run_time_s);
    const auto keep = [&](Shortest& shortest) {
      if (!shortest.point || time_s < shortest.time_s) shortest = {time_s, kept_of(p, kept)};
    };
    const auto place = static_cast<std::size_t>(unit);
    keep(shortest_[place]);
    if (sound) keep(shortest_sound_[place]);
  }
}

void Tally::add_compared(const Point& p, Kept& kept) {
  const WarmUp warm_up = warm_up_of(p.freeze_step, p.steps);
  const bool left_out = counts_.left_out.add(warm_up, backend_fails(p.findings.text()));
  if (left_out && (warm_up != WarmUp::early || backend_fails(p.findings.text()) || any_usual_))
    return;
  if (!left_out && !any_usual_) forget_early();
  const Speedup own = speedup_of(p);
  counts_.verdicts.add(counts_.points - 1, own, verdict_of(own, compressed_share(p), true),
                       p.measure_first.text());
  if (!std::isnan(p.fused_speedup)) {
    const Speedup with = with_ends(p.fused_speedup, p.fused_low, p.fused_high);
    counts_.fused.add(counts_.points - 1, with, verdict_of(with, compressed_share(p), true), "");
  }
  Kept &best = counts_.best, &worst = counts_.worst;
  if (!best)
    for (Group& group : groups_) std::exchange(group.samples_per_s, {});
  if (!best || p.speedup > best->speedup) best = kept_of(p, kept);
  if (!worst || p.speedup < worst->speedup) worst = kept_of(p, kept);
  Group& group = group_of(p);
  if (group.speedups.empty()) {
    const auto add = [](std::vector<Name>& names, Name name) {
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    };
    add(judged_clusters_, p.cluster);
    add(judged_optimizers_, p.optimizer);
  }
  group.speedups.push_back(p.speedup);
}

void Tally::forget_early() {
  any_usual_ = true;
  counts_.verdicts = counts_.fused = {};
  counts_.best = counts_.worst = {};
  judged_clusters_.clear();
  judged_optimizers_.clear();
  for (Group& group : groups_) group.speedups.clear();
}

Tally::Group& Tally::group_of(const Point& p) {
  if (last_ != nullptr && last_->cluster == p.cluster && last_->optimizer == p.optimizer)
    return *last_;
  Group*& group = known_[p.cluster][p.optimizer];
  if (group == nullptr) group = &groups_.emplace_back(Group{p.cluster, p.optimizer, {}, {}});
  return *(last_ = group);
}

void Tally::add_spreads() {
  for (const Name cluster : judged_clusters_)
    for (const Name optimizer : judged_optimizers_) {
      const auto group = known_[cluster].find(optimizer);
      if (group == known_[cluster].end() || group->second->speedups.empty()) continue;
      std::deque<double>& speedups = group->second->speedups;
      const auto [lower, upper] = middle_of(speedups);
      const auto [least, most] = std::ranges::minmax_element(speedups);
      const Name baseline =
          std::ranges::find(compressed_, optimizer, &Compressed::optimizer)->baseline;
      counts_.spreads.push_back(
          {cluster, optimizer, baseline, speedups.size(), *least, (lower + upper) / 2, *most});
    }
}

void Tally::add_rates() {
  for (Group& group : groups_) {
    std::deque<float>& rates = group.samples_per_s;
    if (rates.empty()) continue;
    const float median = middle_of(rates).second;
    const auto [least, most] = std::ranges::minmax_element(rates);
    counts_.rates.push_back({group.optimizer, group.cluster, *least, median, *most});
  }
}

Counts Tally::counts() {
  sort_stably(counts_.reasons, std::ranges::greater(), &Reason::count);
  for (const auto& [all, count] : findings_.rows) {
    std::istringstream words(all.text());
    for (std::string code; words >> code;) counts_.findings[code] += count;
  }
  for (const auto& [source, count] : cost_sources_.rows)
    counts_.cost_sources[source.text()] = count;
  const auto unit = static_cast<std::size_t>(counts_.work.unit());
  counts_.shortest = (shortest_sound_[unit].point ? shortest_sound_ : shortest_)[unit].point;
  if (!any_usual_) counts_.left_out.early = 0;
  add_spreads();
  add_rates();
  return std::move(counts_);
}

}  // namespace lambcast::report
