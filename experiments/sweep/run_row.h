// A row of results.csv as answers use it: the result of the run, whether compression pays there,
// and whether its share of warm-up is usual.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "experiments/verdict/verdict.h"
#include "sim/base/csv.h"

namespace lambcast {

// Results of a run. NaN: absent in the row, or does not apply.
struct RunRow {
  static constexpr double absent = std::numeric_limits<double>::quiet_NaN();

  std::string status;
  double time_s = absent, time_low_s = absent, time_high_s = absent;
  double samples = absent, tokens = absent;  // for the whole run
  double steps = absent, gpus = absent;
  double cost_usd = absent, cost_low_usd = absent, cost_high_usd = absent;
  double memory = absent;                 // peak of a GPU in bytes
  std::optional<Speedup> speedup, fused;  // for rows that compress
  Verdict verdict = Verdict::not_judged;  // verdict on `speedup`
  Verdict fused_verdict = Verdict::not_judged;
  WarmUp warm_up = WarmUp::usual;
  bool fails = false;  // its backend ends with an error
  std::string measure_first;
  std::vector<std::string> findings;  // codes of the findings

  bool ok() const { return status == "ok"; }
};

// Parses a row; `row` counts from 0. Throws Error naming file, line and column for a field that is
// not a number.
RunRow run_row_of(const csv::Table& table, std::size_t row);

// Returns whether the row compresses with a usual share of warm-up, by a backend that runs.
inline bool is_compared(const RunRow& row) {
  return row.ok() && row.speedup && row.warm_up == WarmUp::usual && !row.fails;
}
// Returns the rows among which the fastest and the cheapest are searched: those that ran and either
// do not compress or are compared. If there are none, those that freeze early; else all that ran.
std::vector<const RunRow*> sound_rows(const std::vector<RunRow>& rows);

// Counts of the verdicts of the rows that are compared; `fused`: with the fused kernels. Rows that
// freeze early count if no other row does.
struct RowVerdicts {
  VerdictCounts own, fused;
  LeftOut left_out;
};
RowVerdicts verdicts_of(const std::vector<RunRow>& rows);

}  // namespace lambcast
