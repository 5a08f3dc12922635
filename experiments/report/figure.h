// The figures of a sweep's report.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/report/drawing.h"
#include "experiments/report/slice.h"
#include "experiments/report/speedup_map.h"

namespace lambcast::report {

// Limits of the panels and compressed optimizers drawn. The caption states how many panels there
// would be if not all are drawn.
inline constexpr std::size_t most_panels = 6;
inline constexpr std::size_t most_optimizers = 4;

// Returns all figures below, in this order. The last three are drawn once for each compressed
// optimizer; other exchanges of plain optimizers share exchange_figure(). `thinning` states which
// part of all rows `points` are.
std::vector<Figure> figures_of(const std::vector<Point>& points, const std::string& thinning = {});

// Samples per second over GPUs, with the ideal line: the best rate per GPU at the smallest GPU
// count of the cluster, times GPUs.
Figure throughput_figure(const Rows& rows);
// Samples per second as a share of the ideal line.
Figure efficiency_figure(const Rows& rows);
// Speed-up of whole runs over global batch, at the largest GPU count.
Figure batch_figure(const Rows& rows);
// Speed-up of whole runs over NIC bandwidth, a line for each compressed exchange; none if no
// exchange was swept.
std::optional<Figure> exchange_figure(const Rows& rows);
// Speed-up of whole runs over NIC bandwidth and GPUs, with the break-even line. A line chart if
// there is only one GPU count.
Figure map_figure(const Rows& rows, const std::string& optimizer);
// Parts of a step, for each kind of step.
Figure step_figure(const Rows& rows, const std::string& optimizer);
// Time of the whole run over the share of steps before freeze_step, by backend.
Figure freeze_figure(const Rows& rows, const std::string& optimizer);

// Data of map_figure, one map per cluster, and the slice it shows.
struct MapStudy {
  Slice slice;
  std::vector<SpeedupMap> scans;  // two or more bandwidths at some GPU count
  std::vector<SpeedupMap> maps;   // the scans with two or more GPU counts
};
MapStudy map_study(const Rows& rows, const std::string& optimizer);

// Draws map_figure as lines, for a single GPU count.
void draw_scans(Figure& figure, const MapStudy& study, const std::string& optimizer,
                const std::string& title);

// Returns the optimizers that at least one row compares with a baseline other than themselves, in
// the order of the file.
std::vector<std::string> compressed_optimizers(const std::vector<Point>& points);

// Returns the plain optimizer that the rows of `optimizer` are compared with.
std::string baseline_of(const std::vector<Point>& points, const std::string& optimizer);

// Returns the rows that compare optimizers on equal terms: one model, one batch, the usual backend
// and bandwidth, the published freeze share. No points if `enough` holds for no batch.
Slice common_slice(const Rows& rows, const std::function<bool(const Points&)>& enough);

// Returns the file name of an optimizer's figure, "freeze_onebit_lamb"; safe for any optimizer
// name.
std::string file_stem(std::string_view figure, std::string_view optimizer);
// Describes a slice in a title: "bert-large, global batch 65536, precision fp16".
std::string headline(const Slice& slice);
// Describes a point in a panel's title: "paper-eth40-v100, 40 Gbit/s NIC".
std::string panel_title(const Point& point);
// Returns the rows of each panel, which share cluster and NIC bandwidth. If some get no panel, adds
// a sentence to slice.facts.
std::vector<Points> panels_of(Slice& slice);
// Returns the comment lines that open a data file.
std::vector<std::string> notes_of(const Figure& figure, const Slice& slice);

}  // namespace lambcast::report
