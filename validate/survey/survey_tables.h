// Compares the tables of a survey (validate/measure/survey.h) with the earlier description and with
// the one fitted to the tables.
//
// The forecast is made from the plan of the survey, before a table is read, and kept in
// forecast.csv. Of each table every third size is held out: the fit does not read it, and the two
// descriptions are compared on it, row by row: error = |forecast / measured - 1|.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "validate/measurement.h"

namespace lambcast {

// Returns the tables that plan.csv announces for a backend, without times. Throws Error naming the
// file.
std::vector<validate::Measurement> planned_tables(const std::filesystem::path& plan,
                                                  Backend backend);

// Returns the tables of `folder`/tables that have a row, in the order of their names. Times are in
// place, as in training, if the operation has an in-place form.
std::vector<validate::Measurement> surveyed_tables(const std::filesystem::path& folder);

// Returns the forecast of each planned row as CSV: operation, nodes, ranks, size_bytes, time_us,
// time_low_us, time_high_us. `cluster` is a preset or a file.
std::string survey_forecast_csv(const std::string& cluster,
                                const std::vector<validate::Measurement>& planned);

// Returns the tables that are forecast. Over NCCL, compressed_allreduce is left out, since its time
// includes kernels.
std::vector<validate::Measurement> forecast_tables(std::vector<validate::Measurement> tables);

// Returns a line for each compressed_allreduce that was measured next to an all_reduce of float
// over the same ranks: how many times as fast it is at their largest common size. Empty without
// one.
std::string exchanges_side_by_side(const std::vector<validate::Measurement>& tables);

struct SurveyRows {
  std::vector<validate::Measurement> fitted, held_out;
};

// Holds out the second, fifth, eighth ... size of each table. A table of fewer than three sizes is
// fitted whole.
SurveyRows hold_out_sizes(const std::vector<validate::Measurement>& tables);

struct SurveyComparison {
  double median_before = 0, median_after = 0;  // errors over all rows
  std::string table;                           // medians of each table, for people
  // A line for each row: operation, nodes, ranks, size_bytes, measured_us, before_us, after_us,
  // after_low_us, after_high_us.
  std::string csv;
};

// Compares the forecasts of two descriptions, presets or files, with the measured rows. There must
// be at least one.
SurveyComparison survey_comparison(const std::string& before, const std::string& after,
                                   const std::vector<validate::Measurement>& measured);

}  // namespace lambcast
