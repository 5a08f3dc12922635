// Forecast against measurement: every published training figure that ships inside is forecast by
// the same code as `simulate`, and the error is held against a limit.
//
// A case is one row of a CSV: what was run (keys of WhatIf), which figure of which stage was
// published, its value, and whether the row set a parameter of its cluster ("fitted") or not
// ("unseen"). The error of a forecast f of a measured m is f / m - 1.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/scenario/scenario.h"
#include "validate/replay/coverage.h"

namespace lambcast {

struct ReplayCase {
  std::string id;
  std::string table;  // the publication the row belongs to
  int line = 0;       // its line there
  WhatIf what_if;
  std::string stage;     // "uniform", "warmup", "compression"
  std::string quantity;  // "step_time_ms" or "samples_per_s"
  double measured = 0;
  bool fitted = false;
  double max_error = 0;  // of this row
};

struct ReplayResult {
  ReplayCase of;
  double forecast = 0;
  double error = 0;
  bool within = false;
  double low = 0, high = 0;  // the interval of the forecast, in its unit
};

struct ReplaySummary {
  std::vector<ReplayResult> results;
  double median_error = 0;  // of absolute errors
  double worst_error = 0;
  bool within = false;  // every row and the median
};

// The cases that ship inside; `max_median` is their limit of the median.
std::vector<ReplayCase> published_cases();
constexpr double max_median_error = 0.04;

// A case that is wrong on purpose (twice the published figure): proves that the alarm works.
ReplayCase canary_case();

// Reads cases in the CSV form of validate/replay/published. Throws Error (file:line:column) for a
// field that is none, and for a file without cases: nothing to hold is no success.
std::vector<ReplayCase> parse_cases(std::string_view text, const std::string& name);

ReplaySummary replay(const std::vector<ReplayCase>& cases);

// The median of absolute errors over the fitted or the unseen cases; nothing where there are none.
std::optional<double> median_error_of(const ReplaySummary& summary, bool fitted);

bool inside_interval(const ReplayResult& result);
Coverage coverage_of(const ReplaySummary& summary, bool fitted);
// The median of sqrt(high / low) - 1: how far the ends of the intervals are away.
double median_interval(const ReplaySummary& summary);

std::string replay_table(const ReplaySummary& summary);

// Every case as CSV: table, case, role, what was run, measured and forecast in the unit that
// `quantity` ends with, error, limit, and the interval of the forecast.
std::string replay_csv(const ReplaySummary& summary);

}  // namespace lambcast
