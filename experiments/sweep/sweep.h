// Runs many what-ifs and streams them to results.csv in a fixed order (see sweep_plan.h).
//
// Rows are written in the order of the plan as soon as all rows before them are done. So the file
// is always a prefix of the complete one, for any number of threads. A sweep that was stopped,
// killed or damaged continues after the last good row (sweep_folder.h). Neither points nor rows are
// ever all in memory.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "experiments/output/finding_tally.h"
#include "experiments/sweep/ranks.h"
#include "experiments/sweep/sweep_executor.h"
#include "experiments/sweep/sweep_plan.h"

namespace lambcast {

// Returns the row of `compute`, or a row with the reason why it threw. So neither a point that
// cannot run nor a failed internal check ends a sweep.
SweepRow row_or_reason(const WhatIf& point, const std::function<SweepRow()>& compute);

// Returns the row of a point with its forecast, or with the reason why there is none.
SweepRow sweep_row(const WhatIf& point, Catalog& catalog, CollectiveCosts& costs);

struct SweepOptions {
  std::filesystem::path out = {};
  int jobs = 1;            // threads of each rank; 0 computes on the calling thread
  Ranks* ranks = nullptr;  // set on rank 0, the only rank that writes (sweep_ranks.h)
  bool resume = false;
  // Called several times a second with the rows done and their total. Returning false stops the
  // sweep within a second, even in the middle of points that take minutes. Their threads are
  // abandoned (sweep_executor.h), and the process should end without waiting for them.
  std::function<bool(std::size_t, std::size_t)> progress = {};
  // Receives messages about the folder: rows that are computed again, a folder that cannot be
  // locked.
  std::function<void(const std::string&)> note = {};
  RowOf row_of = sweep_row;  // replaced in tests
};

struct SweepSummary {
  std::size_t points = 0;
  std::size_t written = 0;  // rows written by this call
  std::size_t infeasible = 0;
  bool complete = false;
  FindingTally findings;  // findings of the points computed by this call
};

// Writes results.csv and manifest.json. Throws Error (usage) before anything is written if a value
// is invalid (sweep_check.h) or the folder cannot be used (SweepFolder).
SweepSummary run_sweep(const SweepPlan& plan, const SweepOptions& options);

// Result of a sweep without a folder: all rows in memory, fewer if it was stopped.
struct SweptRows {
  std::vector<std::string> rows;
  FindingTally findings;
  bool complete = false;
};

// Runs a sweep in memory. `texts` are those read by the caller's check_values() (sweep_check.h).
// The folder and notes of the options are unused.
SweptRows sweep_in_memory(const SweepPlan& plan, const SweepOptions& options,
                          const std::shared_ptr<DescriptionTexts>& texts);

}  // namespace lambcast
