// Forecasts that were recorded before the measurement (grade F), the only test that cannot be
// influenced by the answer.
//
// A file of registered forecasts is a CSV: what-if keys, `case` (a name for each row), and
// step_time_s, low_s and high_s of the forecast. Its first line states the day, the version and the
// commit. It is never rewritten: `validate --registered FILE --against RESULTS` compares the
// recorded numbers with later publications, not forecasts of the current program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "validate/replay/source_replay.h"

namespace lambcast {

// Returns the questions (what-if keys and `case`) with the forecasts of this program. `stamp`
// becomes the first line, as a comment. Throws Error for an unknown column, a repeated case, and a
// question without a forecast.
std::string register_forecasts(std::string_view questions, const std::string& file,
                               const std::string& stamp);

struct RegisteredScore {
  std::string stamp;
  std::vector<SourceResult> results;  // cases that have been measured
  std::vector<std::string> waiting;   // cases that have not been measured yet
  ErrorScore score;
};

// Scores the measured cases. `measured` has the columns case and step_time_s. Throws Error for a
// case that is not registered.
RegisteredScore score_registered(std::string_view registered, const std::string& file,
                                 std::string_view measured, const std::string& measured_file);

// Returns a line for each case, then the median error and the number of cases inside their
// intervals.
std::string registered_table(const RegisteredScore& score);

}  // namespace lambcast
