// The memory of a forecast by part, and of a pipeline by stage, for people and as the object
// "memory" of JSON (schemas/simulate.schema.json).
#pragma once

#include <string>

#include "models/training/memory.h"
#include "sim/base/json.h"

namespace lambcast {

// `memory` is what forecast_memory() says of the training.
std::string memory_text(const TrainingPlan& training, const MemoryForecast& memory);
Json memory_json(const TrainingPlan& training, const MemoryForecast& memory);

}  // namespace lambcast
