#include "experiments/report/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <sstream>
#include <unordered_map>

#include "experiments/report/figure.h"
#include "experiments/report/palette.h"
#include "experiments/verdict/turns.h"
#include "sim/base/sort_stably.h"

namespace lambcast::report {
namespace {

constexpr std::size_t most_reasons = 5;

// Describes the bandwidths at which the ends of the speed-up's interval cross 1, the smaller one
// first.
std::string within_phrase(const SpeedupMap& map, std::size_t scan, bool falling) {
  const auto crossing = [&](const std::vector<double>& end, bool smaller) -> std::string {
    const std::vector<Crossing> found = crossings(map.nic_Gbps, end);
    if (found.size() == 1) return fmt::format("{:.3g}", found[0].nic_Gbps);
    return smaller ? fmt::format("below {:.3g}", map.nic_Gbps.front())
                   : fmt::format("above {:.3g}", map.nic_Gbps.back());
  };
  const std::vector<double>&low = map.low[scan], &high = map.high[scan];
  if (std::ranges::any_of(low, [](double end) { return std::isnan(end); })) return "";
  return fmt::format(" ({} to {})", crossing(falling ? low : high, true),
                     crossing(falling ? high : low, false));
}

// Counts of the bandwidths of a scan whose interval is above 1, below 1, or on both sides of it.
struct Told {
  std::size_t pays = 0, loses = 0;
  std::vector<double> open;  // bandwidths at which the side is not certain
  std::size_t all() const { return pays + loses + open.size(); }
};

Told told_of(const SpeedupMap& map, std::size_t scan) {
  Told told;
  for (std::size_t i = 0; i < map.nic_Gbps.size(); ++i) {
    const double value = map.speedup[scan][i];
    if (std::isnan(value)) continue;
    const bool has_ends = !std::isnan(map.low[scan][i]) && !std::isnan(map.high[scan][i]);
    if ((has_ends ? map.low[scan][i] : value) > 1)
      ++told.pays;
    else if ((has_ends ? map.high[scan][i] : value) < 1)
      ++told.loses;
    else
      told.open.push_back(map.nic_Gbps[i]);
  }
  return told;
}

// Formats the counts: "at every bandwidth scanned (1 to 64 Gbit/s)", "at 1 of 10 bandwidths scanned
// (1 to 64 Gbit/s; not certain at 9 of them, from 2 to 64)".
std::string told_text(const SpeedupMap& map, const Told& told) {
  const std::string range =
      fmt::format("{} to {} Gbit/s", map.nic_Gbps.front(), map.nic_Gbps.back());
  if (told.pays == told.all()) return fmt::format("at every bandwidth scanned ({})", range);
  if (told.loses == told.all()) return fmt::format("at no bandwidth scanned ({})", range);
  std::string out =
      fmt::format("at {} of {} bandwidths scanned ({}",
                  told.pays == 0 ? "none" : fmt::format("{}", told.pays), told.all(), range);
  if (!told.open.empty())
    out += fmt::format("; not certain at {} of them, {}", told.open.size(),
                       told.open.size() == 1 ? fmt::format("{:.3g}", told.open.front())
                                             : fmt::format("from {:.3g} to {:.3g}",
                                                           told.open.front(), told.open.back()));
  return out + ")";
}

std::string where_it_pays(const SpeedupMap& map, std::size_t scan) {
  const std::vector<double>& row = map.speedup[scan];
  const std::vector<Crossing> found = crossings(map.nic_Gbps, row);
  if (found.size() == 1) {
    return fmt::format("{} {:.3g} Gbit/s{}", found[0].falling ? "below" : "above",
                       found[0].nic_Gbps, within_phrase(map, scan, found[0].falling));
  }
  if (found.size() > 1) {
    std::vector<std::string> places;
    for (const Crossing& c : found) places.push_back(fmt::format("{:.3g}", c.nic_Gbps));
    return fmt::format("in part, crossing break-even at {} Gbit/s,", fmt::join(places, " and "));
  }
  return told_text(map, told_of(map, scan));
}

std::string conditions(const Point& p, const std::vector<std::string>& apart) {
  std::string text = fmt::format("{} for {} over {} ({} on {}, {} GPUs, global batch {}, {}",
                                 to_text(speedup_of(p)), display_name(p.optimizer.text()),
                                 display_name(p.baseline.text()), p.model, p.cluster, p.gpus,
                                 p.global_batch, p.backend);
  if (!std::isnan(p.freeze_share())) {
    text += fmt::format(", freeze_step {} of {}", p.freeze_step, p.steps);
  }
  if (!std::isnan(p.nic_Gbps)) text += fmt::format(", {:.4g} Gbit/s NIC", p.nic_Gbps);
  for (const std::string& fact : apart) text += ", " + fact;
  return text + ")";
}

std::string left_out(const Summary& v) {
  const std::string said = left_out_text(v.left_out);
  return said.empty() ? said
                      : fmt::format("Left out of counts, best, worst and medians: {}.", said);
}

// Fields that the points of one curve over GPUs share: all except GPUs and batch.
constexpr Name Point::*curve_names[] = {
    &Point::optimizer, &Point::cluster,  &Point::model,   &Point::backend,   &Point::cuda_aware,
    &Point::kernels,   &Point::network,  &Point::device,  &Point::precision, &Point::zero_stage,
    &Point::overlap,   &Point::symmetry, &Point::settings};
constexpr double Point::*curve_numbers[] = {&Point::gpus_per_node, &Point::seq_len, &Point::steps,
                                            &Point::freeze_step, &Point::nic_Gbps};
constexpr double Point::*micro_batches[] = {&Point::micro_batch, &Point::grad_accum};
constexpr double Point::*global_batches[] = {&Point::global_batch};
using Numbers = std::span<double Point::*const>;

bool alike(const Point& a, const Point& b, Numbers batches) {
  const auto both_say = [&](double Point::*number) { return same_number(a.*number, b.*number); };
  return std::ranges::all_of(batches, both_say) && std::ranges::all_of(curve_numbers, both_say) &&
         std::ranges::all_of(curve_names, [&](Name Point::*name) { return a.*name == b.*name; });
}

std::size_t hash_of(const Point& p, Numbers batches) {
  std::size_t hash = 0;
  const auto add = [&](std::size_t more) { hash = (hash ^ more) * 0x9e3779b97f4a7c15; };
  // Adding 0.0 gives -0 the hash of 0; there is only one NaN.
  const auto add_number = [&](double number) { add(std::bit_cast<std::uint64_t>(number + 0.0)); };
  for (const auto number : batches) add_number(p.*number);
  for (const auto number : curve_numbers) add_number(p.*number);
  for (const auto name : curve_names) add(std::hash<Name>()(p.*name));
  return hash;
}

struct NamedCurve {
  std::string shared;  // shared fields, by which curves are sorted in the same order on every run
  StepsOverGpus steps;
};

// Adds the curves that are not monotone, each over points that differ only in GPUs.
void add_turning(const std::vector<Point>& points, Numbers batches,
                 std::vector<NamedCurve>& found) {
  struct Place {
    std::size_t hash;
    const Point* point;
  };
  std::vector<Place> places;  // smaller than a point by a factor of a hundred
  for (const Point& p : points)
    if (p.ok()) places.push_back({hash_of(p, batches), &p});
  sort_stably(places, {}, &Place::hash);
  for (auto first = places.begin(), last = first; first != places.end(); first = last) {
    const auto unlike = [&](const Place& place) { return place.hash != first->hash; };
    if (const auto end = std::find_if(first, places.end(), unlike); end - first < 3) {
      last = end;  // too few points for a turn
      continue;
    }
    const Point& p = *first->point;
    StepsOverGpus curve{
        fmt::format("{} on {}", display_name(p.optimizer.text()), p.cluster), {}, {}};
    for (; last != places.end() && alike(p, *last->point, batches); ++last) {
      curve.gpus.push_back(last->point->gpus);
      curve.step_s.push_back(last->point->run_time_s / last->point->steps);
    }
    curve.sort();
    // Two runs with the same GPUs differ in a field that is not compared here, so they are no
    // curve.
    if (std::ranges::adjacent_find(curve.gpus) != curve.gpus.end()) continue;
    if (turns_of(curve.step_s).empty()) continue;
    NamedCurve& named = found.emplace_back(NamedCurve{curve.of, std::move(curve)});
    for (const auto name : curve_names) named.shared += fmt::format(" {}", p.*name);
    for (const auto number : curve_numbers) named.shared += fmt::format(" {}", p.*number);
    for (const auto number : batches) named.shared += fmt::format(" {}", p.*number);
  }
}

// Describes the curves over GPUs at one micro batch, and at one global batch.
std::string turns_over_gpus(const std::vector<Point>& points) {
  if (std::ranges::all_of(points, [&](const Point& p) { return p.gpus == points.front().gpus; }))
    return "";
  std::vector<NamedCurve> found;
  add_turning(points, micro_batches, found);
  add_turning(points, global_batches, found);
  sort_stably(found, {}, &NamedCurve::shared);
  std::vector<StepsOverGpus> curves;
  for (NamedCurve& curve : found) curves.push_back(std::move(curve.steps));
  return turns_text(curves);
}

// States which sentences are based only on the kept rows.
std::string part_sentence(const Summary& v) {
  return fmt::format(
      "Counts, medians, best and worst are of all rows; break-even bandwidths, turns, the "
      "fastest exchanges, what tells rows apart and pictures of {} of them: {}.",
      v.kept, v.thinning);
}

std::string findings_sentence(const Summary& v) {
  std::vector<std::string> said;
  for (const auto& [code, count] : v.findings)
    said.push_back(fmt::format("{} in {} row{}", code, count, count == 1 ? "" : "s"));
  return fmt::format("Found (lambcast help findings): {}.", fmt::join(said, ", "));
}

std::string counts(const Summary& v) {
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

void add_break_even(const Rows& rows, const std::string& optimizer, Summary& v) {
  const MapStudy study = map_study(rows, optimizer);
  const std::string baseline = baseline_of(rows.all, optimizer);
  const auto& folded = study.slice.folded;
  const std::string with = folded.empty() ? "" : fmt::format(", with {}", fmt::join(folded, ", "));
  std::vector<std::string> phrases;
  for (const SpeedupMap& map : study.scans) {
    const std::size_t scan = largest_scan(map);
    if (scan == map.gpus.size()) continue;
    v.scans.push_back({map.title, optimizer, map.gpus[scan], where_it_pays(map, scan)});
    const std::string flat =
        is_flat_row(map.speedup[scan])
            ? ": no break-even, as the speed-up does not depend on the NIC bandwidth here"
            : "";
    phrases.push_back(
        fmt::format("{} on {} ({} GPUs){}", v.scans.back().pays, map.title, map.gpus[scan], flat));
    if (const auto found = crossings(map.nic_Gbps, map.speedup[scan]); found.size() == 1)
      v.crossings.push_back({map.title, optimizer, baseline, map.gpus[scan], found[0].nic_Gbps,
                             found[0].falling, within_phrase(map, scan, found[0].falling), with});
  }
  if (!phrases.empty())
    v.break_even.push_back(fmt::format("By NIC bandwidth, {} over {} pays {}{}.",
                                       display_name(optimizer), display_name(baseline),
                                       fmt::join(phrases, "; "), with));
}

}  // namespace

Summary summary_of(Counts counts, const std::vector<Point>& kept, const std::string& thinning) {
  Summary v;
  static_cast<Counts&>(v) = std::move(counts);
  v.kept = kept.size();
  v.thinning = thinning;
  v.turns = turns_over_gpus(kept);
  v.contest = contest_of(kept);
  if (v.best) v.best_apart = apart(*v.best, kept);
  if (v.worst) v.worst_apart = apart(*v.worst, kept);
  const Rows rows(kept);
  for (const std::string& optimizer : compressed_optimizers(kept))
    add_break_even(rows, optimizer, v);
  return v;
}

Summary summary_of(const std::vector<Point>& points) {
  Tally tally;
  for (const Point& p : points) tally.add(p);
  return summary_of(tally.counts(), points, "");
}

bool compares(const Summary& v) { return v.best || v.left_out.all() > 0; }

std::vector<std::string> in_brief(const Summary& v) {
  if (!compares(v)) return in_words(v);
  std::vector<std::string> said;
  if (v.ran < v.points) said.push_back(counts(v));
  if (v.best) {
    said.push_back(in_words(v.verdicts, v.fused, [](std::size_t) { return std::string(); }));
    said.push_back(fmt::format("Best: {}.", conditions(*v.best, v.best_apart)));
  }
  if (const std::string rest = left_out(v); !rest.empty()) said.push_back(rest);
  if (!v.break_even.empty()) said.push_back(v.break_even.front());
  return said;
}

std::vector<std::string> in_words(const Summary& v) {
  std::vector<std::string> said = {counts(v)};
  if (!compares(v)) {
    said.push_back("No row compares a compressed optimizer with its plain baseline.");
    if (!v.turns.empty()) said.push_back(v.turns);
    if (!v.findings.empty()) said.push_back(findings_sentence(v));
    if (!v.thinning.empty()) said.push_back(part_sentence(v));
    return said;
  }
  if (v.contest.held()) said.push_back(headline_of(v.contest) + " " + detail_of(v.contest));
  if (v.best) {
    said.push_back(in_words(v.verdicts, v.fused, [](std::size_t) { return std::string(); }));
    said.push_back(fmt::format("Best: {}.", conditions(*v.best, v.best_apart)));
    said.push_back(fmt::format("Worst: {}.", conditions(*v.worst, v.worst_apart)));
  }
  if (const std::string rest = left_out(v); !rest.empty()) said.push_back(rest);
  said.insert(said.end(), v.break_even.begin(), v.break_even.end());
  if (v.break_even.empty()) {
    said.push_back("No scan over NIC bandwidth, so no break-even bandwidth.");
  }
  if (!v.turns.empty()) said.push_back(v.turns);
  if (!v.findings.empty()) said.push_back(findings_sentence(v));
  if (!v.thinning.empty()) said.push_back(part_sentence(v));
  return said;
}

}  // namespace lambcast::report
