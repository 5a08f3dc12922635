// Compares forecasts with measurements. Every shipped training figure is forecast by the same code
// as `simulate`, and its error is compared with a limit.
//
// A case is one row of a CSV: the run (keys of WhatIf), the published figure with its stage and
// value, and whether the row set a parameter of its cluster ("fitted") or not ("unseen"). The error
// of a forecast f of a measured m is f / m - 1.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/scenario/scenario.h"
#include "validate/replay/coverage.h"

namespace lambcast {

struct ReplayCase {
  std::string id;
  std::string table;  // the publication of the row
  int line = 0;       // its line in the table
  WhatIf what_if;
  std::string stage;     // "uniform", "warmup", "compression"
  std::string quantity;  // "step_time_ms" or "samples_per_s"
  double measured = 0;
  bool fitted = false;
  double max_error = 0;  // limit of this row
};

struct ReplayResult {
  ReplayCase of;
  double forecast = 0;
  double error = 0;
  bool within = false;
  double low = 0, high = 0;  // interval of the forecast, in its unit
};

struct ReplaySummary {
  std::vector<ReplayResult> results;
  double median_error = 0;  // median of absolute errors
  double worst_error = 0;
  bool within = false;  // whether every row and the median are within their limits
};

// Returns the shipped cases; `max_median` is the limit of their median.
std::vector<ReplayCase> published_cases();
constexpr double max_median_error = 0.04;

// Returns a case with twice the published figure, which shows that limits detect errors.
ReplayCase canary_case();

// Reads cases in the CSV format of validate/replay/published. Throws Error (file:line:column) for
// an invalid field, and for a file without cases, which would pass trivially.
std::vector<ReplayCase> parse_cases(std::string_view text, const std::string& name);

ReplaySummary replay(const std::vector<ReplayCase>& cases);

// Returns the median of absolute errors over the fitted or the unseen cases; nothing if there are
// none.
std::optional<double> median_error_of(const ReplaySummary& summary, bool fitted);

bool inside_interval(const ReplayResult& result);
Coverage coverage_of(const ReplaySummary& summary, bool fitted);
// Returns the median over the cases of sqrt(high / low) - 1, the half width of an interval.
double median_interval(const ReplaySummary& summary);

std::string replay_table(const ReplaySummary& summary);

// Returns every case as CSV: table, case, role, run, measured and forecast in the unit that
// `quantity` ends with, error, limit, and the interval of the forecast.
std::string replay_csv(const ReplaySummary& summary);

}  // namespace lambcast
