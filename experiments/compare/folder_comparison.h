// Compares the results folders of several sweeps. Lists the fastest and the cheapest point of each,
// the largest gain from compression, and the number of points that do not run.
//
// Points match if they agree in every key of which the folders share values. Two folders that swept
// different optimizers agree in the other keys, and differ in the optimizer. Among the matching
// points of a folder the fastest counts. Ratios are relative to the first folder.
//
// Fastest and cheapest are for equal work (equal_work.h). Points with an unusual share of warm-up
// (verdict.h) are excluded from both.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/verdict/equal_work.h"
#include "experiments/verdict/verdict.h"

namespace lambcast {

// A row of results.csv that ran.
struct FolderPoint {
  std::vector<std::pair<std::string, std::string>> settings;  // keys that vary in any folder
  double run_time_s = 0;
  // absent if the folder has no such columns
  std::optional<double> run_time_low_s, run_time_high_s;
  std::optional<double> cost_usd, cost_low_usd, cost_high_usd;
  std::optional<Speedup> speedup;
  double peak_bytes_per_gpu = 0;
  double share = 1;  // factor from the point's time and cost to those for equal work

  double time_s() const { return share * run_time_s; }
  double usd() const { return share * *cost_usd; }
};

// Ratio of a folder's times to those of the matching points in the first folder.
struct LikePoints {
  std::size_t points = 0;
  double least = 0, median = 0, most = 0;
};

struct ResultsFolder {
  std::string name;
  std::size_t points = 0, ran = 0;
  std::optional<FolderPoint> fastest, cheapest, pays_most;
  std::optional<Verdict> opens;  // the verdict that its sentence opens with
  std::string verdict;           // verdict on compression in words; empty if no point was judged
  std::optional<LikePoints> against_first;  // absent for the first, and if no points match
};

struct FolderComparison {
  std::vector<ResultsFolder> folders;  // in the order of the arguments
  std::vector<std::string> differ;     // keys of which the folders share no value
  EqualWork work;
};

// Formats the settings of a point: "optimizer lamb, gpus 8".
std::string settings_text(const FolderPoint& point);

// Returns whether the folder contains a results.csv.
bool is_results_folder(const std::string& name);

// Compares the folders. Throws Error (usage) for fewer than two folders, a repeated name, or an
// invalid results.csv.
FolderComparison compare_folders(const std::vector<std::string>& names);

std::string folder_comparison_table(const FolderComparison& comparison);
std::string folder_comparison_json(const FolderComparison& comparison);
std::string folder_comparison_csv(const FolderComparison& comparison);

}  // namespace lambcast
