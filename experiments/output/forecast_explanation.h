// Details of a forecast that most readers skip, one text for each word of --explain:
//
//   sources   the numbers behind the costs, with kind, origin and share of the time
//   parts     memory by part, and for a pipeline by stage
//   notes     findings with their meaning and remedy
//
// The answer itself (forecast_output.h) has one line on each.
#pragma once

#include <string>
#include <vector>

#include "experiments/output/judgement.h"
#include "models/training/run/forecast.h"

namespace lambcast {

const std::vector<std::string>& forecast_explanation_names();

std::string explain_forecast(const TrainingPlan& training, const Forecast& forecast,
                             const Judgement& judgement, std::string_view what);

// Returns the table of sources with their kind, origin and share.
std::string sources_text(const std::vector<CostSource>& sources);
// Returns the answer's line on sources: their number, and how many are assumed.
std::string sources_line(const std::vector<CostSource>& sources);

// Formats each finding with its meaning and remedy.
std::string notes_text(const std::vector<Finding>& findings);

// Formats the findings by severity. General ones on DeepSpeed and NCCL are listed by code in one
// line.
std::string findings_text(std::vector<Finding> findings);

}  // namespace lambcast
