// A forecast for people (a table) and for programs (JSON, schema version 1).
#pragma once

#include <string>
#include <vector>

#include "experiments/scenario.h"
#include "models/training/forecast.h"

namespace lambcast {

// `findings` are all there are to show: the scenario's and those of judge().
std::string forecast_json(const Scenario& scenario, const Forecast& forecast,
                          const std::vector<Finding>& findings);
std::string forecast_table(const Scenario& scenario, const Forecast& forecast,
                           const std::vector<Finding>& findings);

// One step of every stage as a Chrome trace (opens in Perfetto): a process per stage, a thread per
// resource. Times in microseconds.
std::string chrome_trace(const TrainingPlan& training);

// FNV-1a over the bytes, as 16 hex digits: tells whether two results used the same file.
std::string hash_of(std::string_view bytes);

// How far each stage may be off, and what that rests on: "step within warmup 7446 to 10164 ms,
// ...".
std::string interval_text(const TrainingPlan& training, const Forecast& forecast);

// Time of a run, however long: "2.9 s", "14 h", "297885 h".
std::string run_time_text(double seconds);

extern const char* const tool_version;

}  // namespace lambcast
