// The memory of a forecast by part, and of a pipeline by stage, for people and as the object
// "memory" of JSON (schemas/simulate.schema.json).
#pragma once

#include <string>

#include "models/training/memory/memory.h"
#include "sim/base/json.h"

namespace lambcast {

// Returns the lines on the memory of a run, as forecast_memory() gives it, with all parts.
std::string memory_text(const TrainingPlan& training, const MemoryForecast& memory);
// Returns the same in brief: the two largest parts, and no stages.
std::string memory_line(const TrainingPlan& training, const MemoryForecast& memory);
Json memory_json(const TrainingPlan& training, const MemoryForecast& memory);

}  // namespace lambcast
