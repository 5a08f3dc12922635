#include "experiments/output/skipped_steps.h"

#include <fmt/format.h>

#include <algorithm>

namespace lambcast {

double expected_skipped_steps(const Precision& precision, std::int64_t steps) {
  if (!precision.loss_scale_window) return 0;
  return static_cast<double>(steps) /
         static_cast<double>(std::max<std::int64_t>(1, *precision.loss_scale_window));
}

std::optional<Finding> find_skipped_steps(const Scenario& scenario) {
  const TrainingPlan& training = scenario.training;
  const auto window = training.recipe.precision.loss_scale_window;
  // A run with fewer steps than the window skips only steps at its beginning.
  if (!window || expected_skipped_steps(training.recipe.precision, training.steps) < 1)
    return std::nullopt;
  const bool own_engine =
      !training.parallelism || training.parallelism->framework.name == FrameworkName::deepspeed;
  const std::string first = own_engine ? fmt::format("from a scale of 2^{} ",
                                                     scenario.config.fp16.initial_scale_power.value)
                                       : "";
  return Finding{
      Severity::note, "skipped-steps",
      fmt::format("fp16's dynamic loss scale skips about {:.2g} of {} updates (one in {}), and the "
                  "first ones {}down to a scale that fits. They count as steps: --skipped-steps "
                  "adds further ones",
                  expected_skipped_steps(training.recipe.precision, training.steps), training.steps,
                  *window, first)};
}

}  // namespace lambcast
