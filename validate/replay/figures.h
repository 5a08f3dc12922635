// The figures of a validation. In all of them a hollow mark was used to fit its cluster and a
// filled one was not; colour and shape tell the publication, the fabric or the operation.
#pragma once

#include <string>
#include <vector>

#include "experiments/report/drawing.h"
#include "validate/replay/scatter.h"
#include "validate/replay/verdict.h"

namespace lambcast {

// More than these are left out, and the caption says so: the cases with the largest errors stay,
// and the clusters with the most rows.
inline constexpr std::size_t most_cases = 60;
inline constexpr std::size_t most_clusters = 24;

// Returns the figures for which the validation has data, in the order of the page.
std::vector<report::Figure> validation_figures(const Validation& validation);

// Forecast over measurement, a panel each for step times and for rates.
report::Figure training_figure(const ReplaySummary& summary);
// Error of each case, with its limit.
report::Figure training_error_figure(const ReplaySummary& summary);
// Forecast over measured time of every row, by fabric.
report::Figure collective_figure(const CollectiveSummary& summary);
// Error over size of every row, by fabric, with the median of each band of size.
report::Figure collective_error_figure(const CollectiveSummary& summary);
// The same, one panel per cluster, by operation.
report::Figure cluster_error_figure(const CollectiveSummary& summary);
// The median error of each table against that of NCCL's own model, by fabric.
report::Figure own_model_figure(const CollectiveSummary& summary);

// The kinds of point in a figure: the most frequent first, those past the known looks together.
struct Kinds {
  std::vector<std::string> names;
  std::size_t index(const std::string& name) const;
};
Kinds kinds_of(const std::vector<std::string>& names);
// A group for every kind and role; the unseen ones come last and so lie on top.
std::vector<DotGroup> groups_of(const Kinds& kinds);
DotGroup& group_of(std::vector<DotGroup>& groups, const Kinds& kinds, const std::string& name,
                   bool fitted);
// Returns one entry for each kind that has dots in some panel, filled for any role, then one for
// each role.
std::vector<report::LegendEntry> legend_of(const std::vector<ScatterPanel>& panels,
                                           const Kinds& kinds);

// The data and the script of a figure whose name, title and caption are set.
void set_chart(report::Figure& figure, ScatterChart chart);

}  // namespace lambcast
