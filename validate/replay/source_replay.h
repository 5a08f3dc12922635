// Sources of measured training runs against their forecasts, row by row and summed up.
//
// The error of a row is that of the time, forecast / measured - 1: of a rate, measured / forecast -
// 1. Of memory it is that of the bytes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "validate/replay/source.h"

namespace lambcast {

struct SourceResult {
  SourceFigure of;
  std::string status;  // "ok", or why there is no forecast; then the numbers mean nothing
  double forecast = 0, error = 0;
  double exposed = 0;  // share of the step in which communication is exposed
  std::optional<double> low,
      high;  // the interval of the forecast, in its quantity; memory has none

  bool ok() const { return status == "ok"; }
  bool inside() const { return low && *low <= of.measured && of.measured <= *high; }
};

// Results in the order of the figures, the same for any number of threads. `prior` replaces the
// shipped one of programs that nobody measured.
std::vector<SourceResult> replay_figures(std::vector<SourceFigure> figures,
                                         const std::optional<ProgramPrior>& prior = {});

// |error| of some results.
struct ErrorScore {
  int rows = 0;     // those with a forecast
  int refused = 0;  // those without
  double median = 0, p90 = 0;
  int with_interval = 0, inside = 0;
  double interval_score = 0;  // mean of those with an interval (validate/interval_score.h)
};
ErrorScore score_of(const std::vector<SourceResult>& results);

// One source: time and rates apart from memory, fitted rows apart from unseen ones.
struct SourceScore {
  std::string source;
  ErrorScore time, fitted, unseen, memory;
  std::optional<ErrorLimit> time_limit, memory_limit;
  bool within = true;
};
struct SourceSummary {
  std::vector<SourceResult> results;
  std::vector<SourceScore> sources;
  ErrorScore all;         // of time, over the rows of all sources
  double of_medians = 0;  // the median of the sources' medians
  // Means over the sources that have intervals, each weighing alike.
  double coverage = 0, interval_score = 0;
  bool within = true;
};

// Every source that ships with rows, against its limits.
SourceSummary replay_sources();
// Rows of one source by its mapping, or of a user where `source` is "runs".
SourceSummary replay_rows(std::string_view text, const std::string& file,
                          const std::string& source);

// source,row,case,quantity,measured,forecast,error,low,high,inside,status
std::string source_results_csv(const SourceSummary& summary);
// A line for each source, then one over all.
std::string source_table(const SourceSummary& summary);
// Returns the sentences about the rows of one source.
std::string source_brief(const SourceSummary& summary);

}  // namespace lambcast
