// One forecast as one CSV row. Columns have a fixed order; new ones go to the end. Every key of a
// WhatIf can be read from its row: from the column of its name, or as KEY=VALUE in `settings`.
// `settings` holds dotted keys, files of descriptions and other keys without a column.
#pragma once

#include <string>
#include <vector>

#include "experiments/output/judgement.h"
#include "experiments/scenario/scenario.h"
#include "models/training/run/forecast.h"

namespace lambcast {

const std::vector<std::string>& result_columns();

// Returns the row of a forecast, without line end (csv.h). `status` is "ok", or "infeasible: ..."
// if the run does not fit in memory.
std::string result_row(const Scenario& scenario, const Forecast& forecast,
                       const Judgement& judgement);

// Returns the row of a point that cannot run: its settings and the reason.
std::string infeasible_row(const WhatIf& what_if, const std::string& reason);

}  // namespace lambcast
