// Forecasts that were written down before anybody measured them (grade F): the only test that no
// knowledge of the answer can have touched.
//
// A file of registered forecasts is a CSV: what-if keys, `case` (a name for each row), and
// step_time_s, low_s and high_s of the forecast. Its first line tells the day, the version and the
// commit. It is never written again: `validate --registered FILE --against RESULTS` compares its
// own numbers with what was published later, not those of today's program.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "validate/replay/source_replay.h"

namespace lambcast {

// Returns the questions (what-if keys and `case`) with the forecasts of this program. `stamp`
// becomes the first line, as a comment. Throws Error for an unknown column, a case that occurs
// twice, and a question that is not forecast.
std::string register_forecasts(std::string_view questions, const std::string& file,
                               const std::string& stamp);

struct RegisteredScore {
  std::string stamp;
  std::vector<SourceResult> results;  // those measured by now
  std::vector<std::string> waiting;   // cases that are not
  ErrorScore score;
};

// `measured` has the columns case and step_time_s. Throws Error for a case that is not registered.
RegisteredScore score_registered(std::string_view registered, const std::string& file,
                                 std::string_view measured, const std::string& measured_file);

// A line for each case, then the median error and how many lie inside.
std::string registered_table(const RegisteredScore& score);

}  // namespace lambcast
