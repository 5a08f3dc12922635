// Common facts of several tables to calibrate on: their library, their origin, and the next command
// to run with the resulting description.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "sim/collectives/backend.h"
#include "validate/measurement.h"

namespace lambcast::validate {

// Returns the library named by the tables or by the user (second argument); NCCL if neither names
// one. Throws Error for tables of another library.
Backend backend_of_tables(std::span<const Measurement> tables, std::optional<Backend> asked);

// Lists the different origins of the tables, if there are few; otherwise counts them.
std::string sources_of(std::span<const Measurement> tables);

// Returns the command that forecasts the collective of the largest table on `description`, a file;
// messages between two ranks become send_recv. There must be at least one table.
std::string forecast_command(const std::string& description, std::span<const Measurement> tables,
                             Backend backend);

}  // namespace lambcast::validate
