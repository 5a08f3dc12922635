#include "experiments/compare/folder_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "experiments/sweep/run_row.h"
#include "sim/base/csv.h"
#include "sim/base/error.h"
#include "sim/base/file.h"

namespace lambcast {
namespace {

// Columns that identify a point's question; the number of nodes follows from them.
const std::vector<std::string> compared_keys{
    "model",        "cluster",       "device",      "optimizer",
    "backend",      "cuda_aware",    "kernels",     "nic_bandwidth_Gbps",
    "gpus",         "gpus_per_node", "micro_batch", "grad_accum",
    "global_batch", "seq_len",       "steps",       "freeze_step",
    "precision",    "zero_stage",    "overlap",     "network",
    "symmetry",     "settings"};

struct Rows {
  std::string folder;
  csv::Table table;
  std::vector<RunRow> runs = {};

  std::string text(std::size_t row, const std::string& column) const {
    return table.has(column) ? table.text(row, column) : "";
  }
  std::set<std::string> values(const std::string& key) const {
    std::set<std::string> found;
    for (std::size_t row = 0; row < table.rows.size(); ++row)
      if (runs[row].ok()) found.insert(text(row, key));
    return found;
  }
};

std::string file_of_folder(const std::string& folder) {
  return (std::filesystem::path(folder) / "results.csv").string();
}

bool share_values(const std::vector<Rows>& all, const std::string& key) {
  const std::set<std::string> first = all.front().values(key);
  for (const Rows& rows : all) {
    const std::set<std::string> own = rows.values(key);
    if (own.empty()) continue;  // no point ran
    if (std::ranges::none_of(own, [&](const std::string& value) { return first.contains(value); }))
      return false;
  }
  return true;
}

std::vector<std::string> varied_keys(const std::vector<Rows>& all) {
  std::vector<std::string> varied;
  for (const std::string& key : compared_keys) {
    std::set<std::string> values;
    for (const Rows& rows : all) values.merge(rows.values(key));
    if (values.size() > 1) varied.push_back(key);
  }
  return varied;
}

std::optional<double> optional(double value) {
  return std::isnan(value) ? std::nullopt : std::optional(value);
}

FolderPoint point_of(const Rows& rows, std::size_t row, const std::vector<std::string>& varied,
                     const EqualWork& work) {
  const RunRow& run = rows.runs[row];
  FolderPoint point;
  for (const std::string& key : varied)
    if (const std::string value = rows.text(row, key); !value.empty())
      point.settings.emplace_back(key, value);
  point.run_time_s = run.time_s;
  point.run_time_low_s = optional(run.time_low_s);
  point.run_time_high_s = optional(run.time_high_s);
  point.cost_usd = optional(run.cost_usd);
  point.cost_low_usd = optional(run.cost_low_usd);
  point.cost_high_usd = optional(run.cost_high_usd);
  point.speedup = run.speedup;
  point.peak_bytes_per_gpu = run.memory;
  point.share = work.share(run.samples, run.tokens);
  return point;
}

ResultsFolder summary_of(const Rows& rows, const std::vector<std::string>& varied,
                         const EqualWork& work) {
  ResultsFolder folder;
  folder.name = rows.folder;
  folder.points = rows.runs.size();
  folder.ran = static_cast<std::size_t>(std::ranges::count_if(rows.runs, &RunRow::ok));
  const auto point = [&](std::size_t row) { return point_of(rows, row, varied, work); };
  for (const RunRow* run : sound_rows(rows.runs)) {
    const FolderPoint here = point(static_cast<std::size_t>(run - rows.runs.data()));
    if (!folder.fastest || here.time_s() < folder.fastest->time_s()) folder.fastest = here;
    if (here.cost_usd && (!folder.cheapest || here.usd() < folder.cheapest->usd()))
      folder.cheapest = here;
  }
  const RowVerdicts verdicts = verdicts_of(rows.runs);
  if (verdicts.own.judged() > 0) folder.pays_most = point(verdicts.own.best_at);
  if (verdicts.own.judged() > 0) folder.opens = verdict_of(verdicts.own);
  folder.verdict = in_words(verdicts.own, verdicts.fused,
                            [&](std::size_t row) { return settings_text(point(row)); });
  return folder;
}

// Returns the time of the fastest point for each combination of values of the shared keys.
std::map<std::string, double> times_by(const Rows& rows, const std::vector<std::string>& shared,
                                       const EqualWork& work) {
  std::map<std::string, double> times;
  for (const RunRow* run : sound_rows(rows.runs)) {
    std::vector<std::string> values;
    for (const std::string& key : shared)
      values.push_back(rows.text(static_cast<std::size_t>(run - rows.runs.data()), key));
    const double time_s = run->time_s * work.share(run->samples, run->tokens);
    const auto [known, fresh] = times.emplace(csv::row(values), time_s);
    if (!fresh) known->second = std::min(known->second, time_s);
  }
  return times;
}

std::optional<LikePoints> like_points(const std::map<std::string, double>& first,
                                      const std::map<std::string, double>& other) {
  std::vector<double> ratios;
  for (const auto& [values, time_s] : other)
    if (const auto of_first = first.find(values); of_first != first.end())
      ratios.push_back(time_s / of_first->second);
  if (ratios.empty()) return std::nullopt;
  std::ranges::sort(ratios);
  const std::size_t half = ratios.size() / 2;
  const double median =
      ratios.size() % 2 == 1 ? ratios[half] : (ratios[half - 1] + ratios[half]) / 2;
  return LikePoints{ratios.size(), ratios.front(), median, ratios.back()};
}

}  // namespace

std::string settings_text(const FolderPoint& point) {
  std::string out;
  for (const auto& [key, value] : point.settings)
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", key, value);
  return out;
}

bool is_results_folder(const std::string& name) {
  std::error_code error;
  return std::filesystem::is_regular_file(file_of_folder(name), error);
}

FolderComparison compare_folders(const std::vector<std::string>& names) {
  if (names.size() < 2) throw Error(Exit::usage, "compare needs two or more folders");
  FolderComparison comparison;
  std::vector<Rows> all;
  for (const std::string& name : names) {
    if (std::ranges::count(names, name) > 1)
      fail_input({"", 0, "compare"}, fmt::format("'{}' is named twice", name));
    if (!is_results_folder(name))
      fail_input({name, 0, ""}, "is not a folder with results: there is no results.csv in it",
                 "clusters or results folders");
    all.push_back({name, csv::parse(read_file(file_of_folder(name)), file_of_folder(name))});
    Rows& rows = all.back();
    for (std::size_t row = 0; row < rows.table.rows.size(); ++row) {
      const RunRow& run = rows.runs.emplace_back(run_row_of(rows.table, row));
      if (run.ok()) comparison.work.add(run.samples, run.tokens);
    }
  }
  std::vector<std::string> shared;
  for (const std::string& key : compared_keys)
    (share_values(all, key) ? shared : comparison.differ).push_back(key);
  const std::vector<std::string> varied = varied_keys(all);
  const std::map<std::string, double> first = times_by(all.front(), shared, comparison.work);
  for (const Rows& rows : all) {
    comparison.folders.push_back(summary_of(rows, varied, comparison.work));
    if (&rows != &all.front())
      comparison.folders.back().against_first =
          like_points(first, times_by(rows, shared, comparison.work));
  }
  return comparison;
}

}  // namespace lambcast
