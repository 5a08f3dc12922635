// The kinds of an optimizer's steps over a run, with the number of steps of each, in order: the
// result of OptimizerModel::phases.
#pragma once

#include <cstdint>
#include <vector>

#include "models/optimizer/passes.h"

namespace lambcast {

// Steps at which an optimizer with 1-bit momenta leaves full precision.
struct OnebitSchedule {
  std::int64_t freeze_step = 100'000;  // 1-bit Adam and LAMB: start of compression
  // 0/1 Adam (arXiv:2202.06009): the step at which its variance freezes, and the growth of the
  // intervals between variance updates (before it) and between exchanges (after it).
  std::int64_t var_freeze_step = 100'000;
  std::int64_t var_update_scaler = 16;     // kappa
  std::int64_t local_step_scaler = 32678;  // DeepSpeed's default (not 32768)
  std::int64_t local_step_clipper = 16;    // H

  bool operator==(const OnebitSchedule&) const = default;
};

// The properties of a run that determine the kinds of its steps.
struct RunOfSteps {
  std::int64_t steps = 0;
  bool dry_run = false;                 // the first step only initialises the optimizer
  std::int64_t warmup = 0;              // steps before the first compressed one, with a dry run
  std::int64_t steps_per_exchange = 1;  // steps from one exchange of gradients to the next
  OnebitSchedule onebit;
  std::int64_t refresh_gap = 0;  // steps between decompositions of GaLore; 0: none
};

struct StepPhase {
  StepKind kind = StepKind::uniform;
  std::int64_t steps = 0;  // may be zero
  bool local = false;      // between two exchanges of local steps
};
using StepPhases = std::vector<StepPhase>;

// Returns equal steps, some of which send nothing if exchanges are rarer.
StepPhases uniform_phases(const RunOfSteps& run);
// Returns full-precision steps, then one-bit steps.
StepPhases onebit_phases(const RunOfSteps& run);

// Numbers of 0/1 Adam's steps over a run. Before the freeze, steps are full or rounds; after it,
// one-bit synchronisations or silent. `steps` are those after the dry run.
struct ZeroOneSteps {
  std::int64_t full = 0, rounds = 0, onebit = 0, silent = 0;
};
ZeroOneSteps zero_one_steps(const OnebitSchedule& schedule, std::int64_t steps);

}  // namespace lambcast
