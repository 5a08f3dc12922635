#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "experiments/report/figure.h"
#include "experiments/report/line_chart.h"
#include "sim/base/sort_stably.h"

namespace lambcast::report {
namespace {

std::vector<Series> optimizer_series(const std::vector<std::string>& optimizers) {
  std::vector<Series> series;
  for (std::size_t i = 0; i < optimizers.size(); ++i) {
    series.push_back({display_name(optimizers[i]), optimizer_look(optimizers[i], i)});
  }
  return series;
}

std::size_t place(const std::vector<std::string>& all, const std::string& one) {
  return static_cast<std::size_t>(std::find(all.begin(), all.end(), one) - all.begin());
}

// Returns the best rate per GPU at the smallest GPU count.
double ideal_rate(const Points& points) {
  const double fewest = values(points, &Point::gpus).front();
  double best = 0;
  for (const Point* p : points) {
    if (p->gpus == fewest) best = std::max(best, p->samples_per_s / p->gpus);
  }
  return best;
}

constexpr const char* needs_gpu_counts =
    "It needs rows that share a batch and a cluster at two or more GPU counts.";

Slice scaling_slice(const Rows& rows) {
  Slice slice = common_slice(rows, [](const Points& some) {
    return any_cluster(some, [](const Points& one) { return vary(one, &Point::gpus); });
  });
  keep_fastest(slice, [](const Point& p) {
    return Coordinates{{p.cluster, p.optimizer}, {p.gpus, or_zero(p.nic_Gbps)}};
  });
  return slice;
}

// Returns the chart of throughput, or of throughput as a percentage of the ideal line.
LineChart scaling_chart(Slice& slice, bool as_share) {
  const std::vector<std::string> optimizers = names(slice.points, &Point::optimizer);
  LineChart chart;
  chart.x_label = "number of GPUs";
  chart.x_column = "gpus";
  chart.series = optimizer_series(optimizers);
  chart.series.push_back({"ideal (linear)", {}, true});
  const std::size_t count = chart.series.size();
  for (const Points& some : panels_of(slice)) {
    const double rate = ideal_rate(some);
    Panel panel{panel_title(*some.front()), {}};
    for (const Point* p : some) {
      const double ideal = rate * p->gpus, unit = as_share ? ideal / 100 : 1;
      const double samples_per_s = p->samples_per_s / unit;
      panel.set(p->gpus, place(optimizers, p->optimizer), count, samples_per_s,
                samples_per_s * p->run_time_s / p->run_high_s,
                samples_per_s * p->run_time_s / p->run_low_s);
      panel.set(p->gpus, count - 1, count, ideal / unit);
    }
    chart.panels.push_back(std::move(panel));
  }
  return chart;
}

void finish(Figure& figure, LineChart& chart, const Slice& slice) {
  chart.name = figure.name;
  chart.notes = notes_of(figure, slice);
  figure.data = chart_data(chart);
  figure.script = chart_script(chart);
}

struct TimeUnit {
  std::string_view name;
  double seconds;
};

TimeUnit unit_for(double longest_s) {
  if (longest_s >= 2 * 3600) return {"hours", 3600};
  if (longest_s >= 120) return {"minutes", 60};
  return {"seconds", 1};
}

std::string backend_label(const Point& p) {
  if (p.backend == "nccl") return "NCCL";
  if (p.backend == "compressed") return "compressed backend";
  if (p.backend != "mpi") return p.backend;
  if (p.cuda_aware.empty()) return "MPI";
  return p.cuda_aware == "true" || p.cuda_aware == "1" ? "MPI, CUDA-aware" : "MPI, host-staged";
}

// Returns the coordinates of a row in the freeze figure. Rows of the plain optimizer are the
// baseline, so their backend does not count.
Coordinates place_over_freeze(const Point& p) {
  Coordinates at{{p.cluster, p.optimizer}, {p.gpus, or_zero(p.nic_Gbps)}};
  if (!p.compressed()) return at;
  at.names[2] = p.backend;
  if (p.backend == "mpi") at.names[3] = p.cuda_aware;
  at.numbers[2] = p.freeze_step;
  return at;
}

bool freeze_share_varies(const Points& points) {
  double first = absent;
  return std::ranges::any_of(points, [&](const Point* p) {
    if (!p->compressed() || std::isnan(p->freeze_share())) return false;
    if (std::isnan(first)) first = p->freeze_share();
    return p->freeze_share() != first;
  });
}

// Returns the rows of the largest GPU count with two or more freeze shares.
Points freeze_points(const Points& cluster) {
  const std::vector<double> gpus = values(cluster, &Point::gpus);
  for (auto n = gpus.rbegin(); n != gpus.rend(); ++n) {
    const Points some = select(cluster, [&](const Point& p) { return p.gpus == *n; });
    if (freeze_share_varies(some)) return some;
  }
  return {};
}

std::vector<std::string> backend_labels(const Points& points) {
  std::vector<std::string> labels;
  for (const Point* p : points) {
    const std::string label = backend_label(*p);
    if (p->compressed() && place(labels, label) == labels.size()) labels.push_back(label);
  }
  return labels;
}

// Returns a panel with one line per backend. The plain run, which has no warm-up, is the level to
// beat; it is the last of `count` series if present.
Panel freeze_panel(const Points& points, const std::vector<std::string>& labels, std::size_t count,
                   TimeUnit unit) {
  Panel panel{fmt::format("{}, {} GPUs", panel_title(*points.front()), points.front()->gpus), {}};
  double plain = absent;
  for (const Point* p : points) {
    if (!p->compressed()) {
      plain = p->run_time_s / unit.seconds;
    } else if (!std::isnan(p->freeze_share())) {
      panel.set(100 * p->freeze_share(), place(labels, backend_label(*p)), count,
                p->run_time_s / unit.seconds, p->run_low_s / unit.seconds,
                p->run_high_s / unit.seconds);
    }
  }
  if (count > labels.size())
    for (auto& [x, row] : panel.rows) row.back() = plain;
  return panel;
}

// Keeps the candidates with the largest speed-ups, as many as can be told apart in one chart.
void keep_fastest_candidates(const Rows& rows, std::vector<std::string>& candidates) {
  constexpr std::size_t most_candidates = 6;
  if (candidates.size() <= most_candidates) return;
  const auto most_speedup = [&](const std::string& candidate) {
    double most = 0;
    for (const SpeedupMap& scan : map_study(rows, candidate).scans)
      if (const std::size_t row = largest_scan(scan); row < scan.gpus.size())
        for (const double speedup : scan.speedup[row]) most = std::fmax(most, speedup);
    return most;
  };
  std::vector<std::pair<double, std::string>> ranked;
  for (const std::string& candidate : candidates)
    ranked.emplace_back(most_speedup(candidate), candidate);
  sort_stably(ranked, std::ranges::greater(), &std::pair<double, std::string>::first);
  ranked.resize(most_candidates);
  std::erase_if(candidates, [&](const std::string& candidate) {
    return std::ranges::find(ranked, candidate, &std::pair<double, std::string>::second) ==
           ranked.end();
  });
}

}  // namespace

Figure throughput_figure(const Rows& rows) {
  Figure figure{"throughput", "Throughput against GPUs", {}, {}, {}, {}};
  Slice slice = scaling_slice(rows);
  if (slice.points.empty()) {
    figure.left_out = needs_gpu_counts;
    return figure;
  }
  LineChart chart = scaling_chart(slice, false);
  chart.title = "Throughput: " + headline(slice);
  chart.y_label = "samples per second";
  chart.log_y = true;
  figure.caption = fmt::format(
      "Slice: {}. Mean of the whole run, warm-up included. Both axes are logarithmic. The dashed "
      "line is ideal scaling from the best rate per GPU at the smallest GPU count of the panel; "
      "the gap to it is what communication and compression cost.",
      stated(slice));
  finish(figure, chart, slice);
  return figure;
}

Figure efficiency_figure(const Rows& rows) {
  Figure figure{"efficiency", "Scaling efficiency against GPUs", {}, {}, {}, {}};
  Slice slice = scaling_slice(rows);
  if (slice.points.empty()) {
    figure.left_out = needs_gpu_counts;
    return figure;
  }
  LineChart chart = scaling_chart(slice, true);
  chart.title = "Scaling efficiency: " + headline(slice);
  chart.y_label = "share of ideal throughput (%)";
  figure.caption = fmt::format(
      "Slice: {}. Throughput as a share of the ideal line of the figure before: all optimizers "
      "have the same reference, the best rate per GPU at the smallest GPU count, so that lines can "
      "be compared with each other. The bands are the intervals of the throughput.",
      stated(slice));
  finish(figure, chart, slice);
  return figure;
}

Figure batch_figure(const Rows& rows) {
  Figure figure{"speedup_batch", "Speed-up against global batch", {}, {}, {}, {}};
  Slice slice = rows.settled;
  keep_usual_nic(slice);
  keep_if(slice, [](const Point& p) { return p.compressed() && std::isfinite(p.speedup); });
  keep_usual_backend(slice);
  keep_published_freeze(slice);
  LineChart chart;
  std::vector<std::string> optimizers = names(slice.points, &Point::optimizer);
  chart.series = optimizer_series(optimizers);
  keep_fastest(slice, [](const Point& p) {
    return Coordinates{{p.cluster, p.optimizer}, {p.gpus, p.global_batch, or_zero(p.nic_Gbps)}};
  });
  for (const Points& some : panels_of(slice)) {
    const std::vector<double> gpus = values(some, &Point::gpus);
    for (auto n = gpus.rbegin(); n != gpus.rend(); ++n) {
      const Points most = select(some, [&](const Point& p) { return p.gpus == *n; });
      if (!vary(most, &Point::global_batch)) continue;
      Panel panel{fmt::format("{}, {} GPUs", panel_title(*some.front()), *n), {}};
      for (const Point* p : most)
        panel.set(p->global_batch, place(optimizers, p->optimizer), optimizers.size(), p->speedup,
                  p->speedup_low, p->speedup_high);
      chart.panels.push_back(std::move(panel));
      break;
    }
  }
  if (chart.panels.empty()) {
    figure.left_out =
        "It needs a compressed optimizer at one GPU count with two or more global batches.";
    return figure;
  }
  chart.title = "Speed-up of the whole run: " + headline(slice);
  chart.x_label = "global batch (samples)";
  chart.x_column = "global_batch";
  chart.y_label = "speed-up over plain (x)";
  chart.level = 1;
  figure.caption = fmt::format(
      "Slice: {}; per cluster the largest GPU count. Time of the whole run with the plain "
      "optimizer "
      "over that with its compressed form; below the dashed line at 1.0 compression does "
      "not pay. A larger batch computes longer between exchanges, so there is less to gain.",
      stated(slice));
  finish(figure, chart, slice);
  return figure;
}

void draw_scans(Figure& figure, const MapStudy& study, const std::string& optimizer,
                const std::string& title) {
  LineChart chart;
  chart.title = title;
  chart.series = optimizer_series({optimizer});
  chart.x_label = "NIC bandwidth (Gbit/s)";
  chart.x_column = "nic_bandwidth_Gbps";
  chart.y_label = "speed-up of the whole run (x)";
  chart.level = 1;
  for (const SpeedupMap& scan : study.scans) {
    const std::size_t row = largest_scan(scan);
    if (row == scan.gpus.size()) continue;
    Panel panel{fmt::format("{}, {} GPUs", scan.title, scan.gpus[row]), {}};
    for (std::size_t i = 0; i < scan.nic_Gbps.size(); ++i)
      panel.set(scan.nic_Gbps[i], 0, 1, scan.speedup[row][i], scan.low[row][i], scan.high[row][i]);
    chart.panels.push_back(std::move(panel));
  }
  finish(figure, chart, study.slice);
}

std::optional<Figure> exchange_figure(const Rows& rows) {
  const auto exchanges = [](const Point& p) { return p.ok() && p.exchanges(); };
  if (std::ranges::none_of(rows.all, exchanges)) return std::nullopt;
  Figure figure{"exchanges", "Where each way of sending less pays, by NIC bandwidth", {}, {}, {},
                {}};
  LineChart chart;
  std::vector<std::string> candidates = compressed_optimizers(rows.all);
  std::erase_if(candidates, [&](const std::string& candidate) {
    return map_study(rows, candidate).scans.empty();
  });
  const std::size_t all = candidates.size();
  keep_fastest_candidates(rows, candidates);
  Slice slice;
  for (const std::string& candidate : candidates) {
    const MapStudy study = map_study(rows, candidate);
    for (const SpeedupMap& scan : study.scans) {
      const std::size_t row = largest_scan(scan);
      if (row == scan.gpus.size()) continue;
      if (slice.points.empty()) slice = study.slice;
      const std::string title = fmt::format("{}, {} GPUs", scan.title, scan.gpus[row]);
      auto panel = std::ranges::find(chart.panels, title, &Panel::title);
      if (panel == chart.panels.end()) panel = chart.panels.insert(panel, {title, {}});
      const std::size_t series = place(candidates, candidate);
      for (std::size_t i = 0; i < scan.nic_Gbps.size(); ++i)
        panel->set(scan.nic_Gbps[i], series, candidates.size(), scan.speedup[row][i],
                   scan.low[row][i], scan.high[row][i]);
    }
  }
  if (chart.panels.empty()) {
    figure.left_out =
        "It needs exchanges on one cluster at two or more NIC bandwidths: scan "
        "cluster.nic.bandwidth.";
    return figure;
  }
  for (const std::string& candidate : candidates)
    chart.series.push_back({display_name(candidate), series_look(chart.series.size())});
  chart.title = "Ways of sending less: " + headline(slice);
  chart.x_label = "NIC bandwidth (Gbit/s)";
  chart.x_column = "nic_bandwidth_Gbps";
  chart.y_label = "speed-up of the whole run (x)";
  chart.log_y = true;
  chart.level = 1;
  figure.caption = fmt::format(
      "Slice: {}. Time of the whole run with the plain optimizer and its all-reduce over that with "
      "each candidate; where a line falls below the dashed one at 1.0 is its break-even.{} The "
      "number of steps is the same: what fewer bits cost in further steps is not forecast.",
      stated(slice),
      candidates.size() < all
          ? fmt::format(" Drawn are the {} fastest of {} candidates; the table has all.",
                        candidates.size(), all)
          : "");
  finish(figure, chart, slice);
  return figure;
}

Figure freeze_figure(const Rows& rows, const std::string& optimizer) {
  const std::string baseline = baseline_of(rows.all, optimizer);
  Figure figure{file_stem("freeze", optimizer),
                fmt::format("What warm-up costs: run time of {} against freeze_step",
                            display_name(optimizer)),
                {},
                {},
                {},
                {}};
  Slice slice = rows.settled;
  keep_usual_nic(slice);
  keep_if(slice, [&](const Point& p) {
    return (p.optimizer == optimizer && p.compressed()) || p.optimizer == baseline;
  });
  const bool varies = keep_batch_and_steps(slice, [](const Points& some) {
    return any_cluster(some, [](const Points& one) { return !freeze_points(one).empty(); });
  });
  keep_fastest(slice, place_over_freeze);
  std::vector<Points> shown;  // empty if freeze_step varies only in clusters without a panel
  for (const Points& panel : panels_of(slice))
    if (const Points some = freeze_points(panel); !some.empty()) shown.push_back(some);
  if (!varies || shown.empty()) {
    figure.left_out = fmt::format(
        "It needs {} at one GPU count and batch with two or more values of freeze_step.",
        display_name(optimizer));
    return figure;
  }
  double longest = 0;
  for (const Point* p : slice.points) longest = std::max(longest, p->run_time_s);
  const TimeUnit unit = unit_for(longest);
  LineChart chart;
  const std::vector<std::string> labels = backend_labels(slice.points);
  for (std::size_t i = 0; i < labels.size(); ++i)
    chart.series.push_back({labels[i], series_look(i)});
  const bool has_plain = std::any_of(shown.begin(), shown.end(), [](const Points& some) {
    return std::any_of(some.begin(), some.end(), [](const Point* p) { return !p->compressed(); });
  });
  if (has_plain) chart.series.push_back({display_name(baseline) + ", plain", {}, true});
  for (const Points& some : shown)
    chart.panels.push_back(freeze_panel(some, labels, chart.series.size(), unit));
  chart.title = fmt::format("{}: {}", display_name(optimizer), headline(slice));
  chart.x_label = "freeze_step (% of steps)";
  chart.x_column = "freeze_percent";
  chart.y_label = fmt::format("whole run ({})", unit.name);
  chart.log_x = false;
  const bool published = optimizer == "onebit_lamb" && slice.points.front()->model == "bert-large";
  if (published) {
    chart.mark_x = 100 * published_freeze_share();
    chart.mark_label = "published";
  }
  figure.caption = fmt::format(
      "Slice: {}; per cluster the largest GPU count. Steps before freeze_step are plain warm-up, "
      "those after it are compressed.{}{} How short a warm-up still converges is not forecast.",
      stated(slice),
      has_plain ? fmt::format(" Where a line meets the dashed one, that backend saves nothing over "
                              "plain {}.",
                              display_name(baseline))
                : "",
      published ? fmt::format(" The dotted upright marks the share of the published run ({:.1f} %, "
                              "1-bit LAMB paper).",
                              100 * published_freeze_share())
                : "");
  finish(figure, chart, slice);
  return figure;
}

}  // namespace lambcast::report
