// Formats the memory of a forecast by part, and for a pipeline by stage, as text and as the object
// "memory" of JSON (schemas/simulate.schema.json).
#pragma once

#include <string>

#include "models/training/memory/memory.h"
#include "sim/base/json.h"

namespace lambcast {

// Formats the memory of a run, as forecast by forecast_memory(), with all parts.
std::string memory_text(const TrainingPlan& training, const MemoryForecast& memory);
// Formats the memory in one line: the two largest parts, without stages.
std::string memory_line(const TrainingPlan& training, const MemoryForecast& memory);
Json memory_json(const TrainingPlan& training, const MemoryForecast& memory);

}  // namespace lambcast
