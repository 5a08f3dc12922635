// Training runs of programs and machines that were used to fit no number of the model. A stack is
// one program on one machine (cluster and device) in one precision.
//
// program_levels.h learns the spread of program levels from them. left_out_stacks.h forecasts each
// like a user's program, after_one_step.h with one measured step. compressed_speedups.h compares
// the gains of runs that send fewer bits.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "validate/replay/source_replay.h"

namespace lambcast {

struct UnseenStack {
  std::string program, machine;  // machine: cluster, device and precision
  std::string framework;         // value of --framework
  std::vector<SourceFigure> rows;
  // Rows whose source does not state all inputs of a forecast. They are used only for speed-ups, in
  // which the missing inputs cancel.
  std::vector<SourceFigure> unstated_rows = {};
  // Names of the rows that send fewer bits, each with the baseline run that it is compared with.
  std::vector<std::pair<std::string, std::string>> plain_runs = {};
};

// Returns whether a run sends uncompressed gradients and exposes communication for less than half
// of its step.
bool mostly_computes(const SourceResult& result);

// Returns half the interval of a result that has one, as a logarithm.
double half_width_of(const SourceResult& result);

// Returns the shipped stacks, in the order of the file.
std::vector<UnseenStack> unseen_stacks();

// Returns cluster, device and precision of a run as far as it states them: "dgx1-v100 v100-32g
// fp16".
std::string machine_of(const WhatIf& what_if);

}  // namespace lambcast
