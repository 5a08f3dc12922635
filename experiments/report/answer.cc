#include "experiments/report/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "experiments/report/html.h"
#include "experiments/report/palette.h"
#include "experiments/report/point_name.h"
#include "experiments/report/slice.h"
#include "experiments/verdict/verdict.h"
#include "sim/base/sort_stably.h"

namespace lambcast::report {
namespace {

std::string grouped(double value) {
  const std::string digits = fmt::format("{:.0f}", value);
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

// Formats three digits, or the whole number if it is longer.
std::string rounded(double value) {
  if (value >= 1000) return grouped(value);
  return fmt::format("{:.{}f}", value, value < 10 ? 2 : value < 100 ? 1 : 0);
}

std::string hours(double seconds) {
  if (seconds < 120) return rounded(seconds) + " s";
  if (seconds < 7200) return rounded(seconds / 60) + " min";
  return rounded(seconds / 3600) + " h";
}

double median(std::vector<float> values) {
  if (values.empty()) return absent;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double time_of(const Point& p, const EqualWork& work) {
  return p.run_time_s * work.share(p.samples_per_s * p.run_time_s, p.tokens_per_s * p.run_time_s);
}

// Returns the median of the values, weighted by their numbers of rows.
double median(const std::map<double, std::size_t>& rows) {
  std::size_t count = 0, up_to = 0;
  for (const auto& [value, some] : rows) count += some;
  for (const auto& [value, some] : rows)
    if ((up_to += some) > count / 2) return value;
  return absent;
}

std::string named(const Point& p, const std::vector<Point>& points) {
  return fmt::format("{} on {}", display_name(p.optimizer.text()), point_name(p, points));
}

KeyNumber shortest_run(const std::vector<Point>& points, const Summary& v) {
  const std::string of = named(*v.shortest, points);
  return {hours(time_of(*v.shortest, v.work)),
          v.work.is_a_run() ? fmt::format("shortest run: {}", of)
                            : fmt::format("fastest, a {}: {}", v.work.name(), of)};
}

// Formats the best or worst point: "best, 1.59 to 3.20x: ...".
KeyNumber extreme_number(const char* which, const Point& p, const std::vector<Point>& points) {
  const Speedup speedup = speedup_of(p);
  const std::string within = speedup.low < speedup.high
                                 ? fmt::format(", {:.2f} to {:.2f}x", speedup.low, speedup.high)
                                 : "";
  return {fmt::format("{:.2f}x", speedup.value),
          fmt::format("{}{}: {} over {}, {}", which, within, display_name(p.optimizer.text()),
                      display_name(p.baseline.text()), point_name(p, points))};
}

// Returns the cluster on which the most candidates have a break-even in their scan.
std::string cluster_of_break_even(const Summary& v) {
  std::string found;
  std::ptrdiff_t most = -1;
  for (const Scan& scan : v.scans) {
    const auto count = std::ranges::count(v.crossings, scan.cluster, &BreakEven::cluster);
    if (count <= most) continue;
    most = count;
    found = scan.cluster;
  }
  return found;
}

// Adds one number per cluster, and one bar per candidate with its break-even, for any number of
// clusters.
void add_contest(Answer& answer, const Results& results, const Summary& v) {
  constexpr std::size_t most_numbers = 3;
  answer.headline = headline_of(v.contest);
  answer.detail = detail_of(v.contest);
  for (const auto& [winner, next] : v.contest.clusters) {
    if (answer.numbers.size() == most_numbers) break;
    KeyNumber number = extreme_number("fastest", *winner, results.points);
    number.label +=
        fmt::format("; next {}, {:.2f}x", display_name(next->optimizer.text()), next->speedup);
    answer.numbers.push_back(std::move(number));
  }
  const std::string told = cluster_of_break_even(v);
  std::map<std::string, std::vector<const Spread*>> spreads;
  for (const Spread& s : v.spreads) spreads[s.optimizer].push_back(&s);
  for (const auto& [candidate, all] : spreads) {
    Range range{display_name(candidate), all[0]->least, absent, all[0]->most};
    std::vector<float> medians;
    for (const Spread* s : all) {
      range.least = std::min(range.least, s->least);
      range.most = std::max(range.most, s->most);
      medians.push_back(static_cast<float>(s->median));
    }
    range.median = median(medians);
    for (const Scan& scan : v.scans)
      if (scan.optimizer == candidate && scan.cluster == told) range.label += ": pays " + scan.pays;
    answer.ranges.push_back(std::move(range));
  }
  sort_stably(answer.ranges, std::ranges::greater(), &Range::median);
  answer.level = 1;
  answer.picture =
      "Speed-up of the whole run over the plain optimizer: least, median (of clusters) and most";
  if (const auto scan = std::ranges::find(v.scans, told, &Scan::cluster); scan != v.scans.end())
    answer.picture += fmt::format("; at which NIC bandwidth each pays is of {} with {} GPUs",
                                  scan->cluster, scan->gpus);
}

// Returns "bert-large: ", or nothing if there are several models.
std::string model_prefix(const std::vector<Point>& points) {
  const std::string_view model = points.front().model.text();
  return std::ranges::all_of(points, [&](const Point& p) { return p.model.text() == model; })
             ? fmt::format("{}: ", model)
             : "";
}

// Returns the row that represents an optimizer on a cluster. Prefers in this order: the most common
// bandwidth (of several that are equally common the middle one), the most GPUs, the largest batch,
// the share of warm-up nearest to the published run, the fastest. Null if no row with a usual share
// of warm-up ran.
const Point* typical_point(const std::vector<Point>& points, const Spread& spread) {
  std::vector<const Point*> rows;
  std::map<double, std::size_t> bandwidths;
  const auto nic = [](const Point& p) { return std::isnan(p.nic_Gbps) ? 0 : p.nic_Gbps; };
  for (const Point& p : points) {
    if (p.optimizer.text() != spread.optimizer || p.cluster.text() != spread.cluster ||
        p.baseline.text() != spread.baseline || !is_sound(p))
      continue;
    rows.push_back(&p);
    ++bandwidths[nic(p)];
  }
  std::size_t most = 0;
  for (const auto& [Gbps, count] : bandwidths) most = std::max(most, count);
  std::erase_if(bandwidths, [&](const auto& bandwidth) { return bandwidth.second < most; });
  const double usual =
      bandwidths.empty()
          ? 0
          : std::next(bandwidths.begin(), static_cast<std::ptrdiff_t>(bandwidths.size() / 2))
                ->first;
  const auto rank = [&](const Point* p) {
    const double share = p->freeze_share();
    const double away = std::isnan(share) ? 0 : std::abs(share - published_freeze_share());
    return std::tuple(nic(*p) == usual, p->gpus, p->global_batch, -away, p->speedup);
  };
  const auto best = std::ranges::max_element(rows, {}, rank);
  return best == rows.end() ? nullptr : *best;
}

// Formats the conditions of a point: "pays; 256 GPUs, batch 65,536, backend nccl, 4.1 Gbit/s".
std::string conditions_of(const Point& p) {
  return fmt::format("{}; {} GPUs, batch {}, backend {}{}",
                     words_of(verdict_of(speedup_of(p), compressed_share(p), true)), p.gpus,
                     grouped(p.global_batch), p.backend,
                     std::isnan(p.nic_Gbps) ? "" : fmt::format(", {:.4g} Gbit/s", p.nic_Gbps));
}

// Describes the gain of the first compressed optimizer on each cluster and its break-even:
// "bert-large: 1-bit LAMB is 1.55x (1.22 to 2.01x) as fast as LAMB on eth40 (pays; 256 GPUs, batch
// 65,536, backend nccl, 4.1 Gbit/s); break-even on edr100 at 131 Gbit/s (47.6 to 247)." Each gain
// is that of a single row.
std::string gains_text(const std::vector<Point>& points, const Summary& v) {
  constexpr std::size_t most_clusters = 3;
  const Spread& first = v.spreads.front();
  std::string gains;
  std::size_t clusters = 0;
  for (const Spread& s : v.spreads) {
    if (s.optimizer != first.optimizer || s.baseline != first.baseline) continue;
    const Point* p = typical_point(points, s);
    if (p == nullptr || ++clusters > most_clusters) continue;
    gains += fmt::format("{}{}{} on {} ({})", gains.empty() ? "" : ", ", to_text(speedup_of(*p)),
                         gains.empty() ? " as fast as " + display_name(s.baseline) : "", s.cluster,
                         conditions_of(*p));
  }
  if (clusters > most_clusters)
    gains += fmt::format(", and on {} more clusters", clusters - most_clusters);
  std::string out = gains.empty() ? fmt::format("{}{} has no row with a usual warm-up on this page",
                                                model_prefix(points), display_name(first.optimizer))
                                  : fmt::format("{}{} is {}", model_prefix(points),
                                                display_name(first.optimizer), gains);
  const auto even = std::ranges::find(v.crossings, first.optimizer, &BreakEven::optimizer);
  if (even != v.crossings.end())
    out += fmt::format("; break-even on {} at {} Gbit/s{}", even->cluster, rounded(even->nic_Gbps),
                       even->within);
  return out + ".";
}

void add_compared(Answer& answer, const Results& results, const Summary& v) {
  const auto unnamed = [](std::size_t) { return std::string(); };
  const std::string counts = headline_of(v.verdicts, unnamed);
  const std::string detail = detail_of(v.verdicts, v.fused, unnamed);
  answer.detail =
      fmt::format("{}{}{}", counts, counts.empty() || detail.empty() ? "" : " ", detail);
  answer.headline = counts.empty() || v.spreads.empty()
                        ? "No run compresses enough of its steps to be judged."
                        : gains_text(results.points, v);
  const auto pair = [](const auto& of) {
    return fmt::format("{} over {}", display_name(std::string_view(of.optimizer)),
                       display_name(std::string_view(of.baseline)));
  };
  answer.numbers.push_back(extreme_number("best", *v.best, results.points));
  if (v.best != v.worst)
    answer.numbers.push_back(extreme_number("worst", *v.worst, results.points));
  if (!v.crossings.empty()) {
    const BreakEven& even = v.crossings.front();
    answer.numbers.push_back(
        {fmt::format("{} Gbit/s", rounded(even.nic_Gbps)),
         fmt::format("break-even{}: {} pays {}, on {}, {} GPUs{}", even.within, pair(even),
                     even.falling ? "below" : "above", even.cluster, even.gpus, even.with)});
  } else {
    answer.numbers.push_back(shortest_run(results.points, v));
  }
  answer.picture =
      "Speed-up of the whole run over the plain optimizer: least, median and most of the points";
  answer.level = 1;
  for (const Spread& s : v.spreads)
    answer.ranges.push_back(
        {fmt::format("{} on {}", pair(s), s.cluster), s.least, s.median, s.most});
}

void add_plain(Answer& answer, const Results& results, const Summary& v) {
  if (!v.most_samples) {
    answer.headline = v.points == 0 ? "There are no points."
                                    : fmt::format("None of {} points can run.",
                                                  grouped(static_cast<double>(v.points)));
    return;
  }
  answer.headline =
      fmt::format("{} of {} points run; the fastest does {} samples a second.",
                  grouped(static_cast<double>(v.ran)), grouped(static_cast<double>(v.points)),
                  rounded(v.most_samples->samples_per_s));
  answer.numbers.push_back({fmt::format("{} /s", rounded(v.most_samples->samples_per_s)),
                            "most samples: " + named(*v.most_samples, results.points)});
  answer.numbers.push_back(shortest_run(results.points, v));
  const Point& best = *v.most_samples_per_gpu;
  answer.numbers.push_back({fmt::format("{} /s", rounded(best.samples_per_s / best.gpus)),
                            "most samples per GPU: " + named(best, results.points)});
  answer.picture = "Samples a second: least, median and most";
  for (const Rates& rates : v.rates)
    answer.ranges.push_back({fmt::format("{} on {}", display_name(rates.optimizer), rates.cluster),
                             rates.least, rates.median, rates.most});
}

std::string rests_on(const Grounds& grounds, const Summary& v) {
  std::map<std::string, std::size_t> costs;
  for (const auto& [source, count] : v.cost_sources)
    costs[source.empty() ? "of unknown origin" : source] = count;
  if (costs.empty()) return {};
  std::vector<std::string> said;
  for (const auto& [source, count] : costs)
    said.push_back(costs.size() == 1
                       ? source
                       : fmt::format("{} in {} rows", source, grouped(static_cast<double>(count))));
  std::string text = fmt::format("Costs are, at their weakest, {}.", fmt::join(said, " and "));
  const std::size_t known = grounds.calibrated + grounds.extrapolated;
  if (known > 0 && grounds.extrapolated == 0)
    text += " Communication lies inside what its cluster was calibrated on.";
  if (grounds.extrapolated > 0)
    text += fmt::format(
        " Communication goes beyond what its cluster was calibrated on in {} of {} rows.",
        grouped(static_cast<double>(grounds.extrapolated)), grouped(static_cast<double>(known)));
  if (!grounds.below_percent.empty())
    text += fmt::format(
        " A step may take {:.0f} % less or {:.0f} % more (median of the rows' intervals).",
        median(grounds.below_percent), median(grounds.above_percent));
  return text;
}

struct Scale {
  double low, high;
  double percent(double value) const { return 100 * std::log(value / low) / std::log(high / low); }
};

Scale scale_of(const Answer& answer) {
  double low = std::isnan(answer.level) ? answer.ranges[0].least : answer.level, high = low;
  for (const Range& range : answer.ranges) {
    low = std::min(low, range.least);
    high = std::max(high, range.most);
  }
  const double room = std::max(1.02, std::pow(high / low, 0.04));
  return {low / room, high * room};
}

std::string range_html(const Range& range, const Scale& scale, double level) {
  const double left = scale.percent(range.least), right = scale.percent(range.most);
  const std::string_view kind = std::isnan(level)      ? ""
                                : range.least >= level ? " gain"
                                : range.most <= level  ? " loss"
                                                       : " both";
  return fmt::format(
      "<div class=range><span>{}</span><b>{} · {} · {}</b><div class=track>{}"
      "<i class=\"extent{}\" style=\"left:{:.2f}%;width:{:.2f}%\"></i>"
      "<i class=median style=\"left:{:.2f}%\"></i></div></div>\n",
      escaped(range.label), rounded(range.least), rounded(range.median), rounded(range.most),
      std::isnan(level)
          ? std::string()
          : fmt::format("<i class=level style=\"left:{:.2f}%\"></i>", scale.percent(level)),
      kind, left, std::max(right - left, 0.4), scale.percent(range.median));
}

}  // namespace

Answer answer_of(const Results& results, const Summary& summary) {
  Answer answer;
  if (summary.contest.held())
    add_contest(answer, results, summary);
  else if (summary.best)
    add_compared(answer, results, summary);
  else
    add_plain(answer, results, summary);
  answer.rests_on = rests_on(results.grounds, summary);
  return answer;
}

std::string answer_html(const Answer& answer) {
  std::string text =
      fmt::format("<section class=answer>\n<p class=headline>{}</p>\n", escaped(answer.headline));
  if (!answer.detail.empty())
    text += fmt::format("<p class=detail>{}</p>\n", escaped(answer.detail));
  if (!answer.numbers.empty()) {
    text += "<div class=numbers>";
    for (const KeyNumber& number : answer.numbers)
      text += fmt::format("<div><b>{}</b><span>{}</span></div>\n", escaped(number.value),
                          escaped(number.label));
    text += "</div>\n";
  }
  if (!answer.ranges.empty()) {
    const Scale scale = scale_of(answer);
    const std::size_t shown = std::min(answer.ranges.size(), most_ranges);
    text +=
        fmt::format("<figure class=ranges><figcaption>{}{}</figcaption>\n", escaped(answer.picture),
                    shown == answer.ranges.size()
                        ? std::string(".")
                        : fmt::format("; the first {} of {}.", shown, answer.ranges.size()));
    for (std::size_t i = 0; i < shown; ++i)
      text += range_html(answer.ranges[i], scale, answer.level);
    if (!std::isnan(answer.level))
      text += "<p class=key>Left of the dashed line, 1.0, compression does not pay.</p>\n";
    text += "</figure>\n";
  }
  if (!answer.rests_on.empty())
    text += fmt::format("<p class=grounds>{}</p>\n", escaped(answer.rests_on));
  return text + "</section>\n";
}

}  // namespace lambcast::report
