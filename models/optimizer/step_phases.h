// The kinds of an optimizer's steps over a run and how many there are of each, in the order in
// which they come: what OptimizerModel::phases says.
#pragma once

#include <cstdint>
#include <vector>

#include "models/optimizer/passes.h"

namespace lambcast {

// When an optimizer of 1-bit momenta leaves full precision.
struct OnebitSchedule {
  std::int64_t freeze_step = 100'000;  // 1-bit Adam and LAMB: the step compression starts at
  // 0/1 Adam (arXiv:2202.06009): the step its variance freezes at, and how the steps between
  // updates and between exchanges grow until then and after.
  std::int64_t var_freeze_step = 100'000;
  std::int64_t var_update_scaler = 16;     // kappa
  std::int64_t local_step_scaler = 32678;  // sic, as DeepSpeed has it
  std::int64_t local_step_clipper = 16;    // H

  bool operator==(const OnebitSchedule&) const = default;
};

// A run, as far as kinds of steps depend on it.
struct RunOfSteps {
  std::int64_t steps = 0;
  bool dry_run = false;                 // the first step only sets the optimizer up
  std::int64_t warmup = 0;              // of them before the first compressed one, the dry run too
  std::int64_t steps_per_exchange = 1;  // of gradients
  OnebitSchedule onebit;
  std::int64_t refresh_gap = 0;  // from one decomposition of GaLore to the next; 0: none
};

struct StepPhase {
  StepKind kind = StepKind::uniform;
  std::int64_t steps = 0;  // may be none
  bool local = false;      // between two exchanges of local steps
};
using StepPhases = std::vector<StepPhase>;

// Steps all alike, but that some send nothing.
StepPhases uniform_phases(const RunOfSteps& run);
// Full precision, then one bit.
StepPhases onebit_phases(const RunOfSteps& run);

// Kinds of 0/1 Adam's steps over a run: those before the freeze are full or rounds, those after it
// synchronise in one bit or are silent. `steps` are those after the dry run.
struct ZeroOneSteps {
  std::int64_t full = 0, rounds = 0, onebit = 0, silent = 0;
};
ZeroOneSteps zero_one_steps(const OnebitSchedule& schedule, std::int64_t steps);

}  // namespace lambcast
