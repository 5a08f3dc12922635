#include "experiments/report/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "experiments/report/figure.h"
#include "experiments/report/palette.h"

namespace lambcast::report {
namespace {

constexpr std::size_t most_reasons = 5;

std::string without_numbers(const std::string& text) {
  std::string masked;
  for (const char c : text) {
    const bool digit = (c >= '0' && c <= '9') || c == '.';
    if (!digit) masked += c;
    if (digit && (masked.empty() || masked.back() != '#')) masked += '#';
  }
  return masked;
}

std::vector<Reason> reasons_of(const std::vector<Point>& points) {
  std::vector<Reason> reasons;  // in the order of the file
  std::unordered_map<std::string, std::size_t> masked;
  std::unordered_map<Name, std::size_t> known;  // places in `reasons`
  for (const Point& p : points) {
    if (p.ok()) continue;
    const auto [status, first] = known.try_emplace(p.status, 0);
    if (first) {
      const auto [reason, added] = masked.try_emplace(without_numbers(p.status), reasons.size());
      if (added) reasons.push_back({p.status, 0});
      status->second = reason->second;
    }
    ++reasons[status->second].count;
  }
  std::stable_sort(reasons.begin(), reasons.end(),
                   [](const Reason& a, const Reason& b) { return a.count > b.count; });
  return reasons;
}

bool compared(const Point& p) { return p.ok() && p.compressed() && std::isfinite(p.speedup); }

// Optimizers without a freeze_step have neither.
bool has_no_warmup(const Point& p) { return p.freeze_step <= 1; }
// The step of a freeze_step compresses already: 50 % of N steps are freeze_step N / 2 + 1.
bool has_long_warmup(const Point& p) {
  return (p.freeze_step - 1) / p.steps > longest_warmup_share;
}
bool judged(const Point& p) { return compared(p) && !has_no_warmup(p) && !has_long_warmup(p); }

std::vector<Spread> spreads_of(const std::vector<Point>& points) {
  Points all;
  std::unordered_map<Name, std::unordered_map<Name, std::vector<double>>> speedups;
  for (const Point& p : points) {
    if (!judged(p)) continue;
    all.push_back(&p);
    speedups[p.cluster][p.optimizer].push_back(p.speedup);
  }
  std::vector<Spread> spreads;
  const std::vector<std::string> optimizers = names(all, &Point::optimizer);
  for (const std::string& cluster : names(all, &Point::cluster)) {
    for (const std::string& optimizer : optimizers) {
      std::vector<double>& some = speedups[Name(cluster)][Name(optimizer)];
      if (some.empty()) continue;
      std::sort(some.begin(), some.end());
      const std::size_t n = some.size();
      const double median = (some[(n - 1) / 2] + some[n / 2]) / 2;
      spreads.push_back({cluster, optimizer, baseline_of(points, optimizer), n, some.front(),
                         median, some.back()});
    }
  }
  return spreads;
}

std::string break_even_phrase(const SpeedupMap& map, std::size_t scan) {
  const std::vector<double>& row = map.speedup[scan];
  const std::string where = fmt::format("on {} ({} GPUs)", map.title, map.gpus[scan]);
  const std::vector<Crossing> found = crossings(map.nic_Gbps, row);
  if (found.size() == 1) {
    return fmt::format("{} {:.3g} Gbit/s {}", found[0].falling ? "below" : "above",
                       found[0].nic_Gbps, where);
  }
  if (found.size() > 1) {
    std::vector<std::string> places;
    for (const Crossing& c : found) places.push_back(fmt::format("{:.3g}", c.nic_Gbps));
    return fmt::format("in part, crossing break-even at {} Gbit/s, {}", fmt::join(places, " and "),
                       where);
  }
  const bool pays = std::any_of(row.begin(), row.end(), [](double s) { return s > 1; });
  return fmt::format("at {} bandwidth scanned ({} to {} Gbit/s) {}", pays ? "every" : "no",
                     map.nic_Gbps.front(), map.nic_Gbps.back(), where);
}

std::string conditions(const Point& p, const std::vector<std::string>& apart) {
  std::string text =
      fmt::format("{:.2f}x for {} over {} ({} on {}, {} GPUs, global batch {}, {}", p.speedup,
                  display_name(p.optimizer.text()), display_name(p.baseline.text()), p.model,
                  p.cluster, p.gpus, p.global_batch, p.backend);
  if (!std::isnan(p.freeze_share())) {
    text += fmt::format(", freeze_step {} of {}", p.freeze_step, p.steps);
  }
  if (!std::isnan(p.nic_Gbps)) text += fmt::format(", {:.4g} Gbit/s NIC", p.nic_Gbps);
  for (const std::string& fact : apart) text += ", " + fact;
  return text + ")";
}

std::string left_out(const Verdict& v) {
  std::vector<std::string> said;
  if (v.no_warmup > 0)
    said.push_back(fmt::format(
        "{} without warm-up (freeze_step 0 or 1), which have no variance to freeze", v.no_warmup));
  if (v.long_warmup > 0)
    said.push_back(fmt::format("{} that warm up for more than {:.0f} % of their steps",
                               v.long_warmup, 100 * longest_warmup_share));
  if (said.empty()) return {};
  return fmt::format("Left out of counts, best, worst and medians: {}.", fmt::join(said, "; "));
}

std::string counts(const Verdict& v) {
  std::string text = fmt::format("Of {} points {} ran", v.points, v.ran);
  if (v.reasons.empty()) return text + ".";
  std::vector<std::string> said;
  std::size_t shown = 0;
  for (const Reason& reason : v.reasons) {
    if (said.size() == most_reasons) break;
    shown += reason.count;
    said.push_back(fmt::format("{} x {}", reason.count, reason.example));
  }
  if (shown < v.points - v.ran) {
    said.push_back(fmt::format("{} x other reasons", v.points - v.ran - shown));
  }
  return fmt::format("{} and {} cannot ({}).", text, v.points - v.ran, fmt::join(said, "; "));
}

}  // namespace

Verdict verdict_of(const std::vector<Point>& points) {
  Verdict v;
  v.points = points.size();
  v.reasons = reasons_of(points);
  v.spreads = spreads_of(points);
  for (const Point& p : points) {
    if (p.ok()) ++v.ran;
    if (!compared(p)) continue;
    if (has_no_warmup(p)) ++v.no_warmup;
    if (has_long_warmup(p)) ++v.long_warmup;
    if (!judged(p)) continue;
    ++v.compared;
    if (p.speedup > 1) ++v.faster;
    if (!v.best || p.speedup > v.best->speedup) v.best = &p;
    if (!v.worst || p.speedup < v.worst->speedup) v.worst = &p;
  }
  if (v.best) v.best_apart = apart(*v.best, points);
  if (v.worst) v.worst_apart = apart(*v.worst, points);
  const Rows rows(points);
  for (const std::string& optimizer : compressed_optimizers(points)) {
    const MapStudy study = map_study(rows, optimizer);
    std::vector<std::string> phrases;
    for (const SpeedupMap& map : study.scans) {
      const std::size_t scan = largest_scan(map);
      if (scan == map.gpus.size()) continue;
      phrases.push_back(break_even_phrase(map, scan));
      if (const auto found = crossings(map.nic_Gbps, map.speedup[scan]); found.size() == 1)
        v.crossings.push_back({map.title, optimizer, baseline_of(points, optimizer), map.gpus[scan],
                               found[0].nic_Gbps, found[0].falling});
    }
    if (phrases.empty()) continue;
    v.break_even.push_back(
        fmt::format("By NIC bandwidth, {} over {} pays {}{}.", display_name(optimizer),
                    display_name(baseline_of(points, optimizer)), fmt::join(phrases, "; "),
                    study.slice.folded.empty()
                        ? ""
                        : fmt::format(", with {}", fmt::join(study.slice.folded, ", "))));
  }
  return v;
}

std::vector<std::string> in_words(const Verdict& v) {
  std::vector<std::string> said = {counts(v)};
  if (v.compared + v.no_warmup + v.long_warmup == 0) {
    said.push_back("No row compares a compressed optimizer with its plain baseline.");
    return said;
  }
  if (v.compared > 0) {
    said.push_back(
        fmt::format("Compression makes the whole run faster in {} of {} compared points.", v.faster,
                    v.compared));
    said.push_back(fmt::format("Best: {}.", conditions(*v.best, v.best_apart)));
    said.push_back(fmt::format("Worst: {}.", conditions(*v.worst, v.worst_apart)));
  }
  if (const std::string rest = left_out(v); !rest.empty()) said.push_back(rest);
  said.insert(said.end(), v.break_even.begin(), v.break_even.end());
  if (v.break_even.empty()) {
    said.push_back("No scan over NIC bandwidth, so no break-even bandwidth.");
  }
  return said;
}

}  // namespace lambcast::report
