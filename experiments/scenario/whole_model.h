// A layout that divides nothing under DeepSpeed is no layout (models/training/plan/pass_options.h):
// --recompute and similar keys change only the passes of a step.
#pragma once

#include "experiments/scenario/words.h"
#include "models/deepspeed/config.h"
#include "models/training/plan/training_plan.h"

namespace lambcast {

// Limit of the elements of a gradient bucket (--gradient-bucket).
inline constexpr std::int64_t most_bucket = 1'000'000'000'000;

// Turns such a layout into options of the run's passes, if they differ from the defaults, and sets
// the size of ZeRO's buckets. Any other layout is kept, and so is one with adapters.
void as_whole_model(const Words& words, TrainingPlan& training, deepspeed::DeepSpeedConfig& config);

}  // namespace lambcast
