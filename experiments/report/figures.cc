#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/report/figure.h"
#include "experiments/report/palette.h"
#include "experiments/report/step_bars.h"

namespace lambcast::report {
std::string file_stem(std::string_view prefix, std::string_view optimizer) {
  std::string stem = fmt::format("{}_{}", prefix, optimizer);
  for (char& c : stem) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain && c != '-') c = '_';
  }
  return stem;
}

std::vector<std::string> compressed_optimizers(const std::vector<Point>& points) {
  Points compressed;
  for (const Point& p : points) {
    if (p.ok() && p.compressed()) compressed.push_back(&p);
  }
  return names(compressed, &Point::optimizer);
}

std::string baseline_of(const std::vector<Point>& points, const std::string& optimizer) {
  for (const Point& p : points) {
    if (p.ok() && p.optimizer == optimizer && p.compressed()) return p.baseline;
  }
  return {};
}

namespace {

bool is_exchange(const std::vector<Point>& points, const std::string& optimizer) {
  return std::ranges::any_of(
      points, [&](const Point& p) { return p.optimizer == optimizer && p.exchanges(); });
}

}  // namespace

std::vector<Figure> figures_of(const std::vector<Point>& points, const std::string& thinning) {
  Rows rows(points);
  if (!thinning.empty()) rows.settled.facts.push_back(thinning);
  std::vector<Figure> figures = {throughput_figure(rows), efficiency_figure(rows),
                                 batch_figure(rows)};
  if (std::optional<Figure> exchanges = exchange_figure(rows))
    figures.push_back(std::move(*exchanges));
  std::vector<std::string> optimizers = compressed_optimizers(points);
  std::erase_if(optimizers, [&](const std::string& name) { return is_exchange(points, name); });
  optimizers.resize(std::min(optimizers.size(), most_optimizers));
  for (const std::string& optimizer : optimizers) {
    figures.push_back(map_figure(rows, optimizer));
    figures.push_back(step_figure(rows, optimizer));
    figures.push_back(freeze_figure(rows, optimizer));
  }
  return figures;
}

Slice common_slice(const Rows& rows, const std::function<bool(const Points&)>& enough) {
  Slice slice = rows.settled;
  keep_usual_nic(slice);
  keep_usual_backend(slice);
  if (!keep_batch_and_steps(slice, enough)) {
    slice.points.clear();
    return slice;
  }
  keep_published_freeze(slice);
  return slice;
}

std::string headline(const Slice& slice) {
  std::vector<std::string> parts = {slice.points.front()->model};
  if (!slice.batch.empty()) parts.push_back(slice.batch);
  parts.insert(parts.end(), slice.folded.begin(), slice.folded.end());
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string panel_title(const Point& point) {
  if (std::isnan(point.nic_Gbps)) return point.cluster;
  return fmt::format("{}, {:.4g} Gbit/s NIC", point.cluster, point.nic_Gbps);
}

std::vector<Points> panels_of(Slice& slice) {
  std::vector<Points> panels;
  for (const std::string& cluster : names(slice.points, &Point::cluster)) {
    const Points some = of_cluster(slice.points, cluster);
    const std::vector<double> bandwidths = values(some, &Point::nic_Gbps);
    if (bandwidths.size() < 2) panels.push_back(some);
    for (std::size_t i = 0; bandwidths.size() > 1 && i < bandwidths.size(); ++i)
      panels.push_back(select(some, [&](const Point& p) { return p.nic_Gbps == bandwidths[i]; }));
  }
  if (panels.size() > most_panels) {
    slice.facts.push_back(
        fmt::format("the first {} of {} clusters and NIC bandwidths", most_panels, panels.size()));
    panels.resize(most_panels);
  }
  return panels;
}

std::vector<std::string> notes_of(const Figure& figure, const Slice& slice) {
  return {figure.title, "slice: " + stated(slice)};
}

MapStudy map_study(const Rows& rows, const std::string& optimizer) {
  MapStudy study{rows.settled, {}, {}};
  Slice& slice = study.slice;
  keep_if(slice, [&](const Point& p) { return p.optimizer == optimizer && p.compressed(); });
  keep_usual_backend(slice);
  // If no cluster has two bandwidths, no batch has two either.
  if (!any_cluster(slice.points, scan_possible)) return study;
  const auto in_some_cluster = [](bool (*possible)(const Points&)) {
    return [possible](const Points& some) { return any_cluster(some, possible); };
  };
  if (!keep_batch_and_steps(slice, in_some_cluster(map_possible)) &&
      !keep_batch_and_steps(slice, in_some_cluster(scan_possible)))
    return study;
  keep_published_freeze(slice);
  keep_fastest(slice, [](const Point& p) {
    return Coordinates{{p.cluster}, {p.gpus, p.nic_Gbps}};
  });
  std::vector<std::string> clusters = names(slice.points, &Point::cluster);
  if (clusters.size() > most_panels) {
    slice.facts.push_back(fmt::format("the first {} of {} clusters", most_panels, clusters.size()));
    clusters.resize(most_panels);
  }
  for (const std::string& cluster : clusters) {
    const Points some = of_cluster(slice.points, cluster);
    if (scan_possible(some)) study.scans.push_back(speedup_map(some, cluster));
    if (map_possible(some)) study.maps.push_back(study.scans.back());
  }
  return study;
}

Figure map_figure(const Rows& rows, const std::string& optimizer) {
  const std::string plain = display_name(baseline_of(rows.all, optimizer));
  const std::string packed = display_name(optimizer);
  Figure figure;
  figure.name = file_stem("speedup_map", optimizer);
  const MapStudy study = map_study(rows, optimizer);
  const bool one_count = study.maps.empty();
  figure.title = fmt::format("Where {} pays: speed-up over {} by NIC bandwidth{}", packed, plain,
                             one_count ? "" : " and GPUs");
  if (study.scans.empty()) {
    figure.left_out =
        "It needs one cluster at two or more NIC bandwidths with the same GPU count and batch: "
        "scan "
        "cluster.nic.bandwidth, and gpus for a map.";
    return figure;
  }
  const std::string title = fmt::format("{} over {}: {}", packed, plain, headline(study.slice));
  figure.caption = fmt::format("Slice: {}. ", stated(study.slice));
  if (one_count) {
    figure.caption += fmt::format(
        "Time of a whole run with {} over that with {}; below the dashed line at 1.0 compression "
        "does not pay. A map needs two or more GPU counts.",
        plain, packed);
    draw_scans(figure, study, optimizer, title);
    return figure;
  }
  figure.caption += fmt::format(
      "Each cell is the time of a whole run with {} over that with {}: blue, above 1.0, pays; "
      "orange, below 1.0, does not pay. The black line is break-even, interpolated between the "
      "simulated points; blank cells did not run.",
      plain, packed);
  figure.data = map_data(study.maps, notes_of(figure, study.slice));
  figure.script = map_script(study.maps, figure.name, title);
  return figure;
}

Figure step_figure(const Rows& rows, const std::string& optimizer) {
  const std::string baseline = baseline_of(rows.all, optimizer);
  Figure figure;
  figure.name = file_stem("step_time", optimizer);
  figure.title = fmt::format("Where the step goes: {} and {}, phase by phase",
                             display_name(baseline), display_name(optimizer));
  Slice slice = common_slice(rows, [&](const Points& some) {
    return !select(some, [&](const Point& p) { return p.optimizer == optimizer; }).empty();
  });
  keep_if(slice, [&](const Point& p) {
    return !p.kinds.empty() && (p.optimizer == optimizer || p.optimizer == baseline);
  });
  if (slice.points.empty()) {
    figure.left_out = "No row of the slice has the parts of its step.";
    return figure;
  }
  keep_fastest(slice, [](const Point& p) {
    return Coordinates{{p.cluster, p.optimizer}, {p.gpus, or_zero(p.nic_Gbps)}};
  });
  if (values(slice.points, &Point::gpus).size() > most_groups) {
    slice.facts.push_back(fmt::format("{} of the GPU counts", most_groups));
  }
  std::vector<BarPanel> panels;
  for (const Points& some : panels_of(slice))
    panels.push_back(bar_panel(some, panel_title(*some.front())));
  figure.caption = fmt::format(
      "Slice: {}. For each GPU count {}, then the phases of {}. Height is GPU time per sample "
      "(step time x GPUs / global batch), so perfect scaling keeps it level; the step time itself "
      "stands above each bar, and the thin line at its end is the interval. Communication is the "
      "part that the backward pass does not hide; the parts add up to the step.",
      stated(slice), display_name(baseline), display_name(optimizer));
  if (std::ranges::all_of(slice.points, [](const Point* p) { return p->compressed(); }))
    figure.caption += fmt::format(
        " {0} has no row here: its bar is the mean step of its run, by the speed-up. "
        "A sweep over both optimizers has its parts.",
        display_name(baseline));
  if (const std::size_t count = overlapping(panels); count > 0) {
    figure.caption += fmt::format(
        " The parts of {} bars overlap in time and add up to more than the step; the tick on the "
        "bar marks the step time.",
        count);
  }
  figure.data = bar_data(panels, notes_of(figure, slice));
  figure.script = bar_script(panels, figure.name,
                             fmt::format("{} and {}: {}", display_name(baseline),
                                         display_name(optimizer), headline(slice)));
  return figure;
}

}  // namespace lambcast::report
