// Compares sources of measured training runs with their forecasts, row by row and in summary.
//
// The error of a row is that of the time, forecast / measured - 1; for a rate it is measured /
// forecast - 1. For memory it is the error of the bytes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/training/run/error_source.h"
#include "validate/replay/source.h"

namespace lambcast {

struct SourceResult {
  SourceFigure of;
  std::string status;  // "ok", or why there is no forecast; then the numbers mean nothing
  double forecast = 0, error = 0;
  double exposed = 0;  // share of the step in which communication is exposed
  std::optional<double> low,
      high;         // interval of the forecast, in its quantity; memory has none
  TimeAtEnds time;  // of the whole run, for ratios of runs; memory and layers have none

  bool ok() const { return status == "ok"; }
  bool inside() const { return low && *low <= of.measured && of.measured <= *high; }
};

// Forecasts the figures. Results are in the order of the figures, the same for any number of
// threads. `prior` replaces the shipped one for programs without measurements.
std::vector<SourceResult> replay_figures(std::vector<SourceFigure> figures,
                                         const std::optional<ProgramPrior>& prior = {});

// Score of the |error| of some results.
struct ErrorScore {
  int rows = 0;     // rows with a forecast
  int refused = 0;  // rows without a forecast
  double median = 0, p90 = 0;
  int with_interval = 0, inside = 0;
  double interval_score = 0;  // mean over those with an interval (validate/interval_score.h)
};
ErrorScore score_of(const std::vector<SourceResult>& results);

// Scores of one source: time and rates separate from memory, fitted rows separate from unseen ones.
struct SourceScore {
  std::string source;
  ErrorScore time, fitted, unseen, memory;
  std::optional<ErrorLimit> time_limit, memory_limit;
  bool within = true;
};
struct SourceSummary {
  std::vector<SourceResult> results;
  std::vector<SourceScore> sources;
  ErrorScore all;         // errors of time, over the rows of all sources
  double of_medians = 0;  // median of the sources' medians
  // Means over the sources that have intervals, with equal weight for each.
  double coverage = 0, interval_score = 0;
  bool within = true;
};

// Replays every shipped source with rows, and compares it with its limits.
SourceSummary replay_sources();
// Replays rows of one source by its mapping, or of a user if `source` is "runs".
SourceSummary replay_rows(std::string_view text, const std::string& file,
                          const std::string& source);

// Returns CSV with source,row,case,quantity,measured,forecast,error,low,high,inside,status.
std::string source_results_csv(const SourceSummary& summary);
// Returns a line for each source, then one for all.
std::string source_table(const SourceSummary& summary);
// Returns the sentences about the rows of one source.
std::string source_brief(const SourceSummary& summary);

}  // namespace lambcast
