// Fits the level of a user's program to measured steps (topologies/program_level.h).
//
// With x the logarithm of the level, t_i(x) the forecast time of run i and m_i the measured one,
//
//   r_i(x) = ln(t_i(x) / m_i)        error of run i
//   s_i    = d r_i / d x             share of the step that is computing, 0 to 1
//   n_i                              standard deviation of run i at a known level: half of its 90 %
//                                    interval over 1.645 (links and run_spread), in quadrature
//                                    with the standard error of logged steps (training_log.h)
//   P      = sqrt(S^2 + v)           standard deviation of x before anything is measured: the
//                                    spread of programs (topologies/program_level.h) and the
//                                    error of the GPU's kernels (models/device/rates_interval.h)
//
// x minimises x^2 / P^2 + sum_i r_i(x)^2 / n_i^2 (Gauss-Newton), and its variance is
//
//   V = c / (1 / P^2 + sum_i s_i^2 / n_i^2),   c = (k + sum_i r_i^2 / n_i^2) / (k + n - 1)
//
// with c the posterior of the variance of this program's runs over run_spread^2, for which the runs
// of other programs count as k = 4 (assumed), so 1 for one run. Runs that contradict one another
// widen the interval exp(x -+ 1.645 sqrt(V)), and that of each further run, whose standard
// deviation about the level is run_spread sqrt(c); runs that agree narrow both. A step that
// mostly waits for its network has a small s_i and a large n_i: it determines the level poorly, and
// a set of runs that leaves V above P^2 / 2 is refused, since its level would be a guess.
//
// Not modelled: how the error grows with the distance to a run.
#pragma once

#include <string>
#include <vector>

#include "topologies/program_level.h"
#include "validate/replay/source_replay.h"

namespace lambcast {

struct FittedRun {
  SourceResult before, after;  // at level 1, and with the fitted level
  double computing = 0;        // s_i
};

struct LevelFit {
  ProgramLevel program;
  std::vector<FittedRun> runs;
  std::vector<SourceResult> memory;  // measured memory, which does not affect the level
};

// Fits the level, on top of levels by kind. Throws Error (usage) if a run cannot be forecast, if
// runs are of several programs or formats, or if communication limits them. The level's source
// names the runs.
LevelFit fit_level(const std::vector<SourceFigure>& figures, const KindLevels& kinds = {});

// Returns the figures as runs on machines with this level.
std::vector<SourceFigure> with_program(std::vector<SourceFigure> figures,
                                       const ProgramLevel& program);

// Formats the level, then each run before and after.
std::string level_report(const LevelFit& fit);

}  // namespace lambcast
