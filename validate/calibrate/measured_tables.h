// Facts that several tables to calibrate on share: their library, their origin, and the next
// question for a description that rests on them.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "sim/collectives/backend.h"
#include "validate/measurement.h"

namespace lambcast::validate {

// Returns the library that the tables name, or the user (`asked`); NCCL if neither names one.
// Throws Error for tables of another.
Backend backend_of_tables(std::span<const Measurement> tables, std::optional<Backend> asked);

// Their different origins, as far as they are few.
std::string sources_of(std::span<const Measurement> tables);

// The command that forecasts on `description`, a file, what the largest table is of; messages
// between two ranks as send_recv. There is at least one table.
std::string forecast_command(const std::string& description, std::span<const Measurement> tables,
                             Backend backend);

}  // namespace lambcast::validate
