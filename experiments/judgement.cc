#include "experiments/judgement.h"

#include <algorithm>
#include <iterator>

#include "experiments/measure_first.h"
#include "experiments/skipped_steps.h"
#include "models/training/compressed_share.h"
#include "models/training/known_runs.h"

namespace lambcast {

Speedup speedup_in(const RatioInterval& ratio) { return {ratio.value, ratio.low, ratio.high}; }

Judgement judgement_of(const Scenario& scenario, const Forecast& forecast) {
  Judgement judgement;
  judgement.findings = scenario.findings;
  if (auto skipped = find_skipped_steps(scenario))
    judgement.findings.push_back(*std::move(skipped));
  std::ranges::copy(judge(scenario.training, forecast), std::back_inserter(judgement.findings));
  if (!forecast.run.speedup) return judgement;
  const RatioInterval& ratio = *forecast.run.speedup;
  // A plain optimizer with another exchange uses it from its first step on.
  if (is_onebit(scenario.training.optimizer()))
    judgement.compressed_share = compressed_share(forecast);
  judgement.verdict =
      verdict_of(speedup_in(ratio), judgement.compressed_share, forecast.memory.fits);
  if (!ratio.shares.empty())
    judgement.measure_first = measurement_for(ratio.shares.front().source, scenario.training);
  return judgement;
}

std::optional<Speedup> fused_speedup(const Scenario& scenario, const Forecast& forecast,
                                     CollectiveCosts& costs) {
  const TrainingPlan& training = scenario.training;
  if (!is_onebit(training.optimizer()) || training.kernels != Kernels::deepspeed ||
      scenario.asked.contains("kernels") || compressed_share(forecast) < least_compressed_share)
    return std::nullopt;
  TrainingPlan fused = training;
  fused.kernels = Kernels::fused;
  if (!costs.runs().of(fused).memory().fits) return std::nullopt;
  return speedup_in(ratio_of(forecast.plain_time, run_time(fused, costs)));
}

}  // namespace lambcast
