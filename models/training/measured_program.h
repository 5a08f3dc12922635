// The effect of one measured step of the user's own program: the passes of every other run of that
// program take its level times as long, and their interval shrinks from the spread between programs
// to the spread between runs of one program.
//
// Half the interval of a pass, in logarithms, with [l, h] the 90 % interval of the level and
// r = run_spread the standard deviation of one run against the level of its program:
//
//   w = sqrt((ln(h / l) / 2)^2 + (1.645 r)^2)
//
// r is measured on published rows (validate/replay/program_spread_test.cc): the median over 64
// programs and machines of the standard deviation of their runs, at other sizes, lengths and
// layouts, about their mean.
//
// Not modelled: how far a run lies from those that were measured.
#pragma once

#include "models/training/training_plan.h"

namespace lambcast {

inline constexpr double run_spread = 0.05;

// The factor on forward and backward; 1 if nobody measured this program on this machine.
double level_of(const TrainingPlan& training);

// Half the interval of passes priced kernel by kernel (models/device/rates_interval.h, unless the
// program was measured).
ComputeWidth width_of_passes(const TrainingPlan& training);

// The same of passes that rest on a curve, which `otherwise` describes.
ComputeWidth width_of_passes(const TrainingPlan& training, const ComputeWidth& otherwise);

}  // namespace lambcast
