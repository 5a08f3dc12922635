// The figures of a validation. In all of them a hollow mark means that the measurement was used to
// fit its cluster; a filled one was not. Colour and shape show the publication, the fabric or the
// operation.
#pragma once

#include <string>
#include <vector>

#include "experiments/report/drawing.h"
#include "validate/replay/scatter.h"
#include "validate/replay/verdict.h"

namespace lambcast {

// Limits of the cases and clusters shown; the caption states their number. The cases with the
// largest errors are kept, and the clusters with the most rows.
inline constexpr std::size_t most_cases = 60;
inline constexpr std::size_t most_clusters = 24;

// Returns the figures for which the validation has data, in the order of the page.
std::vector<report::Figure> validation_figures(const Validation& validation);

// Forecast over measurement, with one panel for step times and one for rates.
report::Figure training_figure(const ReplaySummary& summary);
// Error of each case, with its limit.
report::Figure training_error_figure(const ReplaySummary& summary);
// Forecast time over measured time of every row, by fabric.
report::Figure collective_figure(const CollectiveSummary& summary);
// Error over size of every row, by fabric, with the median of each size band.
report::Figure collective_error_figure(const CollectiveSummary& summary);
// Error over size with one panel per cluster, by operation.
report::Figure cluster_error_figure(const CollectiveSummary& summary);
// The median error of each table against that of NCCL's own model, by fabric.
report::Figure own_model_figure(const CollectiveSummary& summary);

// The kinds of points in a figure, the most frequent first. Kinds after the last look are merged.
struct Kinds {
  std::vector<std::string> names;
  std::size_t index(const std::string& name) const;
};
Kinds kinds_of(const std::vector<std::string>& names);
// Returns a group for every kind and role. Unseen ones come last, so they are drawn on top.
std::vector<DotGroup> groups_of(const Kinds& kinds);
DotGroup& group_of(std::vector<DotGroup>& groups, const Kinds& kinds, const std::string& name,
                   bool fitted);
// Returns a legend with one entry for each kind that has dots in some panel (filled for any role),
// then one for each role.
std::vector<report::LegendEntry> legend_of(const std::vector<ScatterPanel>& panels,
                                           const Kinds& kinds);

// Sets data and script of a figure that has its name, title and caption.
void set_chart(report::Figure& figure, ScatterChart chart);

}  // namespace lambcast
