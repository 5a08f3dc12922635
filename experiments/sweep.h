// Many what-ifs from one file: every combination of a grid, streamed to results.csv in a fixed
// order.
//
//   name = "..."                       description = "..."
//   [base]                             what all points share: keys of WhatIf
//   [grid]                             every combination; lists, or scans "8:256:x2", "0:100:25"
//   [[variant]]                        (optional) each crossed with the grid; its keys win
//   [[part]]                           (optional) several sweeps in one: part.base, part.grid,
//                                      part.variant beside or instead of those above
//
// Keys with dots ("cluster.nic.bandwidth") are quoted. The points and their order follow from the
// file alone. Rows are written in that order as soon as all before them are done, whatever the
// number of threads, so the file is always a prefix of the whole; a resumed sweep cuts a torn last
// line and goes on behind it.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/scenario.h"
#include "models/training/collective_costs.h"

namespace lambcast {

// The sweep file of a study that ships inside (its folder's name), or empty.
std::string study_text(std::string_view name);

// A key and the values it takes; as one `--scan KEY=lo:hi:step` or `--list KEY=a,b` it replaces the
// key in every part's grid.
using Axis = std::pair<std::string, std::vector<std::string>>;

struct SweepPlan {
  std::string name;
  std::string description;
  std::string text_hash;  // of the file and the extra grid
  std::vector<WhatIf> points;
};

// The keys in which the points differ, by name, with their values in the order of the points. A key
// that some points lack takes no value there.
std::vector<Axis> axes_of(const std::vector<WhatIf>& points);

Axis parse_scan(std::string_view text);
Axis parse_list(std::string_view text);

// "8:256:x2" (geometric) or "0:100:25" (arithmetic); both ends included where they are met. A unit
// behind the numbers is kept: "1Gbit/s:64Gbit/s:x2".
std::vector<std::string> expand_scan(std::string_view text, const Where& where);

// Throws Error for what is not a sweep, and for more than ten million points.
SweepPlan plan_sweep(std::string_view text, const std::string& file, const std::vector<Axis>& axes);

struct SweepOptions {
  std::filesystem::path out;
  int jobs = 1;
  bool resume = false;
  // Called from time to time with rows done and rows in all; returning false stops the sweep.
  std::function<bool(std::size_t, std::size_t)> progress;
};

struct SweepSummary {
  std::size_t points = 0;
  std::size_t written = 0;  // by this call
  std::size_t infeasible = 0;
  bool complete = false;
};

// Writes results.csv and manifest.json. Throws Error when `out` holds results already and `resume`
// is not set, holds those of another sweep, or is being written by another process.
SweepSummary run_sweep(const SweepPlan& plan, const SweepOptions& options);

// One row of a point, infeasible or not; the text is without line end.
std::string sweep_row(const WhatIf& point, Catalog& catalog, CollectiveCosts& costs);

}  // namespace lambcast
