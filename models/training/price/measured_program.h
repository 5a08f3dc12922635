// The level of a run's program on its machine, how it is known, and the interval of its passes.
//
//   evidence                                       level       half the interval, in logarithms
//   [program] of this framework and format         measured    w below
//   a figure of this program set compute_scale     the scale   rates_width(), level known
//   a curve of this program on this GPU            the curve   compute_width()
//   none                                           1           wider by the spread S of levels
//
// The passes of every other run of a measured program take its level times as long, and their
// interval shrinks from the spread between programs to the spread between runs of one program.
//
// Half the interval of a pass, in logarithms, with [l, h] the 90 % interval of the level,
// r the standard deviation of one run against the level of its program, run_spread unless several
// runs of it were measured (validate/program/level_fit.h), and
// g = growth_spread that of the drift with the number of GPUs:
//
//   w = sqrt((ln(h / l) / 2)^2 + (1.645 r)^2 + (1.645 g (z(n) - z(n_0)))^2)
//
// z (models/training/price/slowest_rank.h) is the expected largest of n standard normal numbers,
// and n_0 the nearest to n of the numbers of GPUs that were measured. Both spreads are measured on
// published rows (validate/replay/program_spread_test.cc). r is the median over 64 programs and
// machines of the standard deviation of their runs, at other sizes, lengths and layouts, about
// their mean. g is that of their slopes on z: some drift as if jitter of a step were summed over
// ranks, as many do the opposite, and their mean is 0.01. So a drift widens, and shifts nothing.
//
// Not modelled: how far a run lies from those that were measured in size, length and layout.
#pragma once

#include "models/training/plan/training_plan.h"

namespace lambcast {

inline constexpr double run_spread = 0.05;
inline constexpr double growth_spread = 0.04;

// Returns the factor on forward and backward; 1 if this program was not measured on this machine.
double level_of(const TrainingPlan& training);

// Half the interval of passes priced kernel by kernel (models/device/rates_interval.h, unless the
// program was measured).
ComputeWidth width_of_passes(const TrainingPlan& training);

// The same of passes that rest on a curve or a rate, which `otherwise` describes. `level_known`:
// the program that ran gave the curve, or the width was found over several programs.
ComputeWidth width_of_passes(const TrainingPlan& training, const ComputeWidth& otherwise,
                             bool level_known);

// The scale of compute as a figure of this machine and this program set it; nothing if none did.
std::optional<double> own_scale_of(const TrainingPlan& training);

// Variance of what kernels of its GPU are off (models/device/rates_interval.h).
double variance_of_kernels(const TrainingPlan& training);

// The program that the run is forecast as, a word of --framework.
std::string_view framework_of_run(const TrainingPlan& training);

}  // namespace lambcast
