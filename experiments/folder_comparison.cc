#include "experiments/folder_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "sim/base/csv.h"
#include "sim/base/error.h"
#include "sim/base/file.h"

namespace lambcast {
namespace {

// What a point was asked with; the number of nodes follows.
const std::vector<std::string> keys{
    "model",        "cluster",       "device",      "optimizer",
    "backend",      "cuda_aware",    "kernels",     "nic_bandwidth_Gbps",
    "gpus",         "gpus_per_node", "micro_batch", "grad_accum",
    "global_batch", "seq_len",       "steps",       "freeze_step",
    "precision",    "zero_stage",    "overlap",     "network",
    "symmetry",     "settings"};

struct Rows {
  std::string folder;
  csv::Table table;

  std::string text(std::size_t row, const std::string& column) const {
    return table.has(column) ? table.text(row, column) : "";
  }
  std::optional<double> number(std::size_t row, const std::string& column) const {
    const std::string field = text(row, column);
    if (field.empty()) return std::nullopt;
    return table.number(row, column);
  }
  bool ran(std::size_t row) const { return table.text(row, "status") == "ok"; }
  std::set<std::string> values(const std::string& key) const {
    std::set<std::string> found;
    for (std::size_t row = 0; row < table.rows.size(); ++row)
      if (ran(row)) found.insert(text(row, key));
    return found;
  }
};

std::string file_of(const std::string& folder) {
  return (std::filesystem::path(folder) / "results.csv").string();
}

bool share_values(const std::vector<Rows>& all, const std::string& key) {
  const std::set<std::string> first = all.front().values(key);
  for (const Rows& rows : all) {
    const std::set<std::string> own = rows.values(key);
    if (own.empty()) continue;  // nothing ran
    if (std::ranges::none_of(own, [&](const std::string& value) { return first.contains(value); }))
      return false;
  }
  return true;
}

std::vector<std::string> varied_keys(const std::vector<Rows>& all) {
  std::vector<std::string> varied;
  for (const std::string& key : keys) {
    std::set<std::string> values;
    for (const Rows& rows : all) values.merge(rows.values(key));
    if (values.size() > 1) varied.push_back(key);
  }
  return varied;
}

FolderPoint point_of(const Rows& rows, std::size_t row, const std::vector<std::string>& varied) {
  FolderPoint point;
  for (const std::string& key : varied)
    if (const std::string value = rows.text(row, key); !value.empty())
      point.settings.emplace_back(key, value);
  point.run_time_s = rows.table.number(row, "run_time_s");
  point.run_time_low_s = rows.number(row, "run_time_low_s");
  point.run_time_high_s = rows.number(row, "run_time_high_s");
  point.cost_usd = rows.number(row, "cost_usd");
  // Of plain optimizers there is nothing to compare.
  point.speedup_low = rows.number(row, "speedup_low");
  point.speedup_high = rows.number(row, "speedup_high");
  if (point.speedup_low) point.speedup = rows.number(row, "speedup_vs_baseline");
  point.peak_bytes_per_gpu = rows.table.number(row, "peak_bytes_per_gpu");
  return point;
}

ResultsFolder summary_of(const Rows& rows, const std::vector<std::string>& varied) {
  ResultsFolder folder;
  folder.name = rows.folder;
  folder.points = rows.table.rows.size();
  for (std::size_t row = 0; row < folder.points; ++row) {
    if (!rows.ran(row)) continue;
    ++folder.ran;
    const FolderPoint point = point_of(rows, row, varied);
    if (!folder.fastest || point.run_time_s < folder.fastest->run_time_s) folder.fastest = point;
    if (point.cost_usd && (!folder.cheapest || *point.cost_usd < *folder.cheapest->cost_usd))
      folder.cheapest = point;
    if (point.speedup && (!folder.pays_most || *point.speedup > *folder.pays_most->speedup))
      folder.pays_most = point;
  }
  return folder;
}

// By the values of these keys the time of the fastest point.
std::map<std::string, double> times_by(const Rows& rows, const std::vector<std::string>& shared) {
  std::map<std::string, double> times;
  for (std::size_t row = 0; row < rows.table.rows.size(); ++row) {
    if (!rows.ran(row)) continue;
    std::vector<std::string> values;
    for (const std::string& key : shared) values.push_back(rows.text(row, key));
    const double time_s = rows.table.number(row, "run_time_s");
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

bool is_results_folder(const std::string& name) {
  std::error_code error;
  return std::filesystem::is_regular_file(file_of(name), error);
}

FolderComparison compare_folders(const std::vector<std::string>& names) {
  if (names.size() < 2) throw Error(Exit::usage, "compare needs two or more folders");
  std::vector<Rows> all;
  for (const std::string& name : names) {
    if (std::ranges::count(names, name) > 1)
      fail_input({"", 0, "compare"}, fmt::format("'{}' is named twice", name));
    if (!is_results_folder(name))
      fail_input({name, 0, ""}, "is no folder with results: there is no results.csv in it");
    all.push_back({name, csv::parse(read_file(file_of(name)), file_of(name))});
  }
  FolderComparison comparison;
  std::vector<std::string> shared;
  for (const std::string& key : keys)
    (share_values(all, key) ? shared : comparison.differ).push_back(key);
  const std::vector<std::string> varied = varied_keys(all);
  const std::map<std::string, double> first = times_by(all.front(), shared);
  for (const Rows& rows : all) {
    comparison.folders.push_back(summary_of(rows, varied));
    if (&rows != &all.front())
      comparison.folders.back().against_first = like_points(first, times_by(rows, shared));
  }
  return comparison;
}

}  // namespace lambcast
