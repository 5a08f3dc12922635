// Compares a user's log with the description of a cluster: which of its tables the description was
// fitted to, and how each row compares with its forecast.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "validate/replay/collective_replay.h"

namespace lambcast {

// Returns the tables as cases. A table counts as fitted if the description names it ([calibration]
// fitted_tables), or if it is one that the preset was fitted to.
std::vector<CollectiveCase> log_cases(std::vector<validate::Measurement> tables,
                                      const std::string& name, const std::string& cluster,
                                      std::optional<Backend> backend);

// Formats a sentence for each table, "your all_reduce takes 9 times what this description
// forecasts", and every row with both times.
std::string log_replay_table(const CollectiveSummary& summary);

}  // namespace lambcast
