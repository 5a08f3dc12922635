// Judgement of a forecast: the findings, and whether compression pays (verdict.h) with DeepSpeed's
// kernels and with the fused ones of kernels/. The fused kernels are judged even if not requested,
// since few users find their flag.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/scenario/scenario.h"
#include "experiments/verdict/verdict.h"
#include "models/training/run/forecast.h"

namespace lambcast {

struct Judgement {
  std::vector<Finding> findings = {};   // findings on the configuration, then on the run
  std::optional<Verdict> verdict = {};  // set for a run that compresses
  double compressed_share = 1;          // share of the steps that compress
  std::string why_not_judged = {};      // reason for Verdict::not_judged
  // the measurement that would narrow the speed-up's interval most; may be empty
  std::string measure_first = {};
  // the source of error that moves the time of the run most, and the factors on this time at both
  // ends of its interval
  std::optional<ErrorShare> weakest = {};
  std::optional<Speedup> fused = {};  // the speed-up with the fused kernels, if computed
};

// Returns why the run is not judged: it has no warm-up, or hardly compresses. Empty for a run that
// is judged.
std::string why_not_judged(const Scenario& scenario, double compressed_share);

// Leaves `fused` empty, since it needs another forecast.
Judgement judgement_of(const Scenario& scenario, const Forecast& forecast);

// Returns nothing if the question chooses kernels, if there are none to replace, or if the run
// would not fit in memory.
std::optional<Speedup> fused_speedup(const Scenario& scenario, const Forecast& forecast,
                                     CollectiveCosts& costs);

Speedup speedup_in(const RatioInterval& ratio);

}  // namespace lambcast
