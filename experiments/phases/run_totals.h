// Means over a whole run of phases, including its pauses and failures.
#pragma once

#include <optional>
#include <vector>

#include "experiments/phases/run_phases.h"

namespace lambcast {

struct RunTotals {
  double samples_per_s = 0;
  std::optional<double> tokens_per_s, mfu;  // for models that have a sequence
  double tflops_per_gpu = 0;
  const RunPhase* largest = nullptr;  // the phase with the highest peak of memory
  std::vector<CostSource> sources;    // shares of the time of all steps
};

// `run` must outlive the result.
RunTotals totals_of(const PhasedRun& run);

}  // namespace lambcast
