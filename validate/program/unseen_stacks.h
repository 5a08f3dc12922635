// Training runs of programs and machines that no number of the model was fitted to. A stack is one
// program on one machine (cluster and device) in one precision.
//
// program_levels.h learns from them how far levels of programs spread, left_out_stacks.h forecasts
// each as a user's own, after_one_step.h with one step measured, and compressed_speedups.h compares
// the gains of runs that send fewer bits.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "validate/replay/source_replay.h"

namespace lambcast {

struct UnseenStack {
  std::string program, machine;  // machine: cluster, device and precision
  std::string framework;         // word of --framework
  std::vector<SourceFigure> rows;
  // Rows of which the source does not say all that a forecast needs: for speed-ups alone, in which
  // the missing cancels.
  std::vector<SourceFigure> unstated_rows = {};
  // Names of its rows that send fewer bits, and of the plain run that each is compared with.
  std::vector<std::pair<std::string, std::string>> plain_runs = {};
};

// Whether a run sends gradients as they are, and exposes communication for less than half of its
// step.
bool mostly_computes(const SourceResult& result);

// Half the interval of a result that has one, in logarithms.
double half_width_of(const SourceResult& result);

// The stacks that ship, in the order of the file.
std::vector<UnseenStack> unseen_stacks();

// "dgx1-v100 v100-32g fp16": cluster, device and precision of a run, where it states them.
std::string machine_of(const WhatIf& what_if);

}  // namespace lambcast
