#include "experiments/output/judgement.h"

#include <algorithm>
#include <iterator>

#include "experiments/output/measure_first.h"
#include "experiments/output/skipped_steps.h"
#include "models/training/run/compressed_share.h"
#include "models/training/run/known_runs.h"

namespace lambcast {

namespace {

// Returns the source with the widest effect on a time; nothing if no source moves it.
std::optional<ErrorShare> weakest_source(const TimeAtEnds& time) {
  TimeAtEnds exact;
  exact.s = 1;
  exact.at.fill({1, 1});
  const std::vector<ErrorShare> shares = ratio_of(time, exact).shares;
  if (shares.empty()) return std::nullopt;
  return ErrorShare{shares.front().source, shares.front().low / time.s,
                    shares.front().high / time.s};
}

}  // namespace

Speedup speedup_in(const RatioInterval& ratio) { return {ratio.value, ratio.low, ratio.high}; }

Judgement judgement_of(const Scenario& scenario, const Forecast& forecast) {
  Judgement judgement;
  judgement.findings = scenario.findings;
  if (auto skipped = find_skipped_steps(scenario))
    judgement.findings.push_back(*std::move(skipped));
  std::ranges::copy(judge(scenario.training, forecast), std::back_inserter(judgement.findings));
  judgement.weakest = weakest_source(forecast.time);
  if (!forecast.run.speedup) return judgement;
  const RatioInterval& ratio = *forecast.run.speedup;
  // All steps of other runs compress: a plain optimizer uses its exchange from the first step on.
  if (is_onebit(scenario.training.optimizer()))
    judgement.compressed_share = compressed_share(forecast);
  judgement.verdict =
      verdict_of(speedup_in(ratio), judgement.compressed_share, forecast.memory.fits);
  judgement.why_not_judged = why_not_judged(scenario, judgement.compressed_share);
  if (!judgement.why_not_judged.empty() && forecast.memory.fits)
    judgement.verdict = Verdict::not_judged;
  if (!ratio.shares.empty())
    judgement.measure_first = measurement_for(ratio.shares.front().source, scenario.training);
  return judgement;
}

std::string why_not_judged(const Scenario& scenario, double compressed_share) {
  const TrainingPlan& training = scenario.training;
  const auto freeze_step = freeze_step_of(training.recipe);
  const auto steps = static_cast<double>(training.steps);
  if (freeze_step && warm_up_of(static_cast<double>(*freeze_step), steps) == WarmUp::none)
    return no_warm_up_text();
  return compressed_share < least_compressed_share ? why_not_judged(compressed_share, steps) : "";
}

std::optional<Speedup> fused_speedup(const Scenario& scenario, const Forecast& forecast,
                                     CollectiveCosts& costs) {
  const TrainingPlan& training = scenario.training;
  if (!is_onebit(training.optimizer()) || training.kernels != Kernels::deepspeed ||
      scenario.asked.contains("kernels") || compressed_share(forecast) < least_compressed_share)
    return std::nullopt;
  TrainingPlan fused = training;
  fused.kernels = Kernels::fused;
  if (!known_runs(costs).of(fused).memory().fits) return std::nullopt;
  return speedup_in(ratio_of(forecast.plain_time, run_time(fused, costs)));
}

}  // namespace lambcast
