// A row of results.csv as answers read it: what came of the run, whether compression pays there,
// and whether anybody would run it so.
#pragma once

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "experiments/verdict/verdict.h"
#include "sim/base/csv.h"

namespace lambcast {

// NaN: the row does not say, or it does not apply.
struct RunRow {
  static constexpr double absent = std::numeric_limits<double>::quiet_NaN();

  std::string status;
  double time_s = absent, time_low_s = absent, time_high_s = absent;
  double samples = absent, tokens = absent;  // of the whole run
  double steps = absent, gpus = absent;
  double cost_usd = absent, cost_low_usd = absent, cost_high_usd = absent;
  double memory = absent;                 // bytes, peak of a GPU
  std::optional<Speedup> speedup, fused;  // of rows that compress
  Verdict verdict = Verdict::not_judged;  // of the speed-up
  Verdict fused_verdict = Verdict::not_judged;
  WarmUp warm_up = WarmUp::usual;
  std::string measure_first;
  std::vector<std::string> findings;  // codes

  bool ok() const { return status == "ok"; }
};

// `row` counts from 0. Throws Error naming file, line and column for a field that is no number.
RunRow run_row_of(const csv::Table& table, std::size_t row);

// A row that compresses with a share of warm-up as people have it.
inline bool is_compared(const RunRow& row) {
  return row.ok() && row.speedup && row.warm_up == WarmUp::usual;
}
// Rows among which the fastest and the cheapest are looked for: those that ran, without degenerate
// shares of warm-up; all that ran where there are no others.
std::vector<const RunRow*> sound_rows(const std::vector<RunRow>& rows);

// The verdicts of the rows that are compared, by their number, and with the fused kernels.
struct RowVerdicts {
  VerdictCounts own, fused;
  std::size_t no_warmup = 0, mostly_warmup = 0;  // left out
};
RowVerdicts verdicts_of(const std::vector<RunRow>& rows);

}  // namespace lambcast
