// A DeepSpeed configuration as the recipe of a run: the one place where its words turn into the
// values that plans and forecasts read.
//
// Source: DeepSpeed v0.15.4 to v0.19.5, runtime/engine.py (get_data_types), runtime/config.py.
#pragma once

#include "models/deepspeed/config.h"
#include "models/recipe/recipe.h"

namespace lambcast::deepspeed {

// Returns the engine of a release (release.h).
Engine engine_of(const Version& release);

// Without an optimizer, Adam's; the defaults of DeepSpeed stand for what the file leaves out.
Recipe recipe_of(const DeepSpeedConfig& config);

}  // namespace lambcast::deepspeed
