// Plans sweep files, and forecasts one of their points.
#include "experiments/sweep/sweep.h"
#include "sim/base/fuzz_target.h"

FUZZ_TARGET(sweep, text) {
  using namespace lambcast;
  const SweepPlan plan = plan_sweep(text, "sweep.toml", {});
  if (plan.points.size() == 0) throw std::logic_error("a sweep without points");
  plan.points[0];
  plan.points[plan.points.size() - 1];
  axes_of(plan.points);
}
