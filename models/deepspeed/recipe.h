// Converts a DeepSpeed configuration to the recipe of a run, whose values plans and forecasts read.
//
// Source: DeepSpeed v0.15.4 to v0.19.5, runtime/engine.py (get_data_types), runtime/config.py.
#pragma once

#include "models/deepspeed/config.h"
#include "models/recipe/recipe.h"

namespace lambcast::deepspeed {

// Returns the engine of a release (release.h).
Engine engine_of(const Version& release);

// Returns the recipe of a file. Missing keys get DeepSpeed's defaults; a missing optimizer becomes
// Adam.
Recipe recipe_of(const DeepSpeedConfig& config);

}  // namespace lambcast::deepspeed
