#include "experiments/output/pass_efficiency.h"

#include <algorithm>
#include <cmath>

#include "models/training/plan/distinct_steps.h"
#include "models/training/plan/step_plan.h"
#include "models/training/price/measured_program.h"
#include "models/training/price/pass_price.h"

namespace lambcast {
namespace {

// Times of the passes in the mean step.
struct PassTimes {
  double computing_s = 0, whole_s = 0;
};

PassTimes passes_at(End end, const TrainingPlan& training, CollectiveCosts& costs) {
  const double width = width_of_passes(training).log;
  PassTimes mean;
  for (const DistinctStep& step : distinct_steps(training)) {
    const TrainingPlan of = step.gas == 0 ? training : in_step(training, step);
    const StepPlan plan = plan_step(of, step);
    const PipelinePrice price = price_pipeline(*plan.pipeline, of, costs, end, width);
    const double share = static_cast<double>(step.steps) / static_cast<double>(training.steps);
    for (std::size_t i = 0; i < price.forward.size(); ++i)
      mean.computing_s += share * (price.forward[i] + price.backward[i]).s() /
                          static_cast<double>(price.forward.size());
    mean.whole_s +=
        share *
        (plan.pipeline->synchronised ? price.time.makespan : price.time.longest_stage()).s();
  }
  return mean;
}

}  // namespace

double efficiency_with_passes_at(End end, const TrainingPlan& training, double useful,
                                 double step_s) {
  CollectiveCosts costs;
  const PassTimes expected = passes_at(End::expected, training, costs);
  const PassTimes other = passes_at(end, training, costs);
  return (useful * step_s + other.computing_s - expected.computing_s) /
         (step_s + other.whole_s - expected.whole_s);
}

PassError pass_error(const TrainingPlan& training, double useful, double step_s) {
  const double a = efficiency_with_passes_at(End::compute_low, training, useful, step_s);
  const double b = efficiency_with_passes_at(End::compute_high, training, useful, step_s);
  return {std::log(useful / std::min({a, b, useful})), std::log(std::max({a, b, useful}) / useful)};
}

}  // namespace lambcast
