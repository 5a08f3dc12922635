// The level of a run's program on its machine, the evidence for it, and the interval of its passes.
//
//   evidence                                       level       interval half-width, in logarithms
//   [program] of this framework and format         measured    w below
//   a figure of this program set compute_scale     the scale   rates_width(), level known
//   a curve of this program on this GPU            the curve   compute_width()
//   none                                           1           wider by the spread S of levels
//
// If a program was measured, the passes of its other runs take its level times as long, and their
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
// and n_0 the measured number of GPUs that is nearest to n. Both spreads are measured on published
// rows (validate/replay/program_spread_test.cc). Each program and machine has runs of other sizes,
// lengths and layouts: r is the median, over 64 of them, of the standard deviation of their runs. g
// is the standard deviation of their slopes on z. Some drift as if the jitter of a step were summed
// over ranks, an equal number drift the other way, and the mean slope is 0.01. So a drift widens
// the interval and does not shift it.
//
// Not modelled: how far a run differs from the measured ones in size, length and layout.
#pragma once

#include "models/training/plan/training_plan.h"

namespace lambcast {

inline constexpr double run_spread = 0.05;
inline constexpr double growth_spread = 0.04;

// Returns the factor on forward and backward; 1 if this program was not measured on this machine.
double level_of(const TrainingPlan& training);

// Returns the half-width of passes priced kernel by kernel (models/device/rates_interval.h, unless
// the program was measured).
ComputeWidth width_of_passes(const TrainingPlan& training);

// Returns the half-width of passes that depend on a curve or a rate, whose own width is
// `otherwise`. `level_known`: the curve is of the program that runs, or the width was found over
// several programs.
ComputeWidth width_of_passes(const TrainingPlan& training, const ComputeWidth& otherwise,
                             bool level_known);

// Returns the scale of compute set by a figure of this machine and this program; nothing if there
// is none.
std::optional<double> own_scale_of(const TrainingPlan& training);

// Returns the variance of the errors of this GPU's kernels (models/device/rates_interval.h).
double variance_of_kernels(const TrainingPlan& training);

// Returns the program that the run is forecast as, a word of --framework.
std::string_view framework_of_run(const TrainingPlan& training);

}  // namespace lambcast
