// Judgement of a forecast: the findings, and whether compression pays (verdict.h) with DeepSpeed's
// kernels and with the fused ones of kernels/. The latter are judged unrequested, since few users
// find their flag.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/scenario/scenario.h"
#include "experiments/verdict/verdict.h"
#include "models/training/run/forecast.h"

namespace lambcast {

struct Judgement {
  std::vector<Finding> findings = {};   // of the configuration, then of the run
  std::optional<Verdict> verdict = {};  // of a run that compresses
  double compressed_share = 1;          // of its steps
  std::string why_not_judged = {};      // of Verdict::not_judged
  std::string measure_first = {};  // what would narrow the speed-up's interval most; may be empty
  std::optional<Speedup> fused = {};  // the speed-up with the fused kernels, if computed
};

// Returns why the run is not judged: it has no warm-up, or hardly compresses. Empty for a run that
// is judged.
std::string why_not_judged(const Scenario& scenario, double compressed_share);

// Leaves `fused` empty: it takes a forecast of its own.
Judgement judgement_of(const Scenario& scenario, const Forecast& forecast);

// Returns nothing if kernels are chosen, if there are none to replace, or if the run would not fit
// in memory.
std::optional<Speedup> fused_speedup(const Scenario& scenario, const Forecast& forecast,
                                     CollectiveCosts& costs);

Speedup speedup_in(const RatioInterval& ratio);

}  // namespace lambcast
