#include "validate/replay/figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/base/sort_stably.h"

namespace lambcast {
namespace {

bool has_clusters(const CollectiveSummary& summary) {
  return std::any_of(summary.results.begin(), summary.results.end(), [&](const auto& result) {
    return result.of.cluster != summary.results.front().of.cluster;
  });
}

}  // namespace

std::vector<report::Figure> validation_figures(const Validation& validation) {
  std::vector<report::Figure> figures;
  if (validation.training) {
    figures.push_back(training_figure(*validation.training));
    figures.push_back(training_error_figure(*validation.training));
  }
  if (validation.collectives) {
    figures.push_back(collective_figure(*validation.collectives));
    figures.push_back(collective_error_figure(*validation.collectives));
    if (has_clusters(*validation.collectives))
      figures.push_back(cluster_error_figure(*validation.collectives));
    figures.push_back(own_model_figure(*validation.collectives));
  }
  return figures;
}

std::size_t Kinds::index(const std::string& name) const {
  const auto at = std::find(names.begin(), names.end(), name) - names.begin();
  return std::min(static_cast<std::size_t>(at), report::shapes);
}

Kinds kinds_of(const std::vector<std::string>& names) {
  std::map<std::string, int> counts;
  for (const std::string& name : names) ++counts[name];
  Kinds kinds;
  for (const auto& [name, count] : counts) kinds.names.push_back(name);
  sort_stably(kinds.names, [&](const auto& a, const auto& b) { return counts[a] > counts[b]; });
  return kinds;
}

std::vector<DotGroup> groups_of(const Kinds& kinds) {
  std::vector<DotGroup> groups;
  const std::size_t count = std::min(kinds.names.size(), report::shapes + 1);
  for (const bool fitted : {true, false}) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::string name = i < report::shapes ? kinds.names[i] : "others";
      groups.push_back({fmt::format("{}, {}", name, fitted ? "fitted" : "unseen"),
                        report::shape_look(i, !fitted),
                        {}});
    }
  }
  return groups;
}

DotGroup& group_of(std::vector<DotGroup>& groups, const Kinds& kinds, const std::string& name,
                   bool fitted) {
  return groups[kinds.index(name) + (fitted ? 0 : groups.size() / 2)];
}

std::vector<report::LegendEntry> legend_of(const std::vector<ScatterPanel>& panels,
                                           const Kinds& kinds) {
  using Mark = report::LegendEntry::Mark;
  const std::size_t count = panels.front().groups.size() / 2;
  const auto has_dots = [&](std::size_t group) {
    return std::any_of(panels.begin(), panels.end(),
                       [&](const auto& panel) { return !panel.groups[group].dots.empty(); });
  };
  std::vector<report::LegendEntry> entries;
  bool fitted = false, unseen = false;
  for (std::size_t i = 0; i < count; ++i) {
    fitted = fitted || has_dots(i);
    unseen = unseen || has_dots(count + i);
    if (!has_dots(i) && !has_dots(count + i)) continue;
    const report::Look look = report::shape_look(i, true);
    const std::string name = i < report::shapes
                                 ? kinds.names[i]
                                 : fmt::format("{} others", kinds.names.size() - report::shapes);
    entries.push_back({name, Mark::point, look.colour, look.point, look.size * 1.3});
  }
  if (fitted) entries.push_back({"hollow: fitted", Mark::point, "#606060", 6, 1.2});
  if (unseen) entries.push_back({"filled: unseen", Mark::point, "#606060", 7, 1.2});
  return entries;
}

void set_chart(report::Figure& figure, ScatterChart chart) {
  chart.name = figure.name;
  chart.title = figure.title;
  chart.notes = {figure.title, figure.caption};
  figure.data = scatter_data(chart);
  figure.script = scatter_script(chart);
  figure.chart = scatter_page_chart(chart);
}

}  // namespace lambcast
