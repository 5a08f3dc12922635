// Compares the tables of a survey (validate/measure/survey.h) with the earlier description and with
// the one fitted to the tables.
//
// The forecast is made from the plan of the survey, before a table is read, and kept in
// forecast.csv. A table is compared row by row: error = |forecast / measured - 1|.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "validate/measurement.h"

namespace lambcast {

// Returns the tables that plan.csv announces, without times. Throws Error naming the file.
std::vector<validate::Measurement> planned_tables(const std::filesystem::path& plan);

// Returns the tables of `folder`/tables that have a row, in the order of their names.
std::vector<validate::Measurement> surveyed_tables(const std::filesystem::path& folder);

// Returns the forecast of each planned row as CSV: operation, nodes, ranks, size_bytes, time_us,
// time_low_us, time_high_us. `cluster` is a preset or a file.
std::string survey_forecast_csv(const std::string& cluster,
                                const std::vector<validate::Measurement>& planned);

// Returns a row for each table: operation, nodes, ranks, rows, median error of both descriptions
// over sizes of 64 KiB and more (all sizes if there are none).
std::string survey_comparison(const std::string& before, const std::string& after,
                              const std::vector<validate::Measurement>& measured);

}  // namespace lambcast
