// Parses recorded training curves.
#include "experiments/convergence/curves.h"
#include "sim/base/fuzz_target.h"

FUZZ_TARGET(curves, text) {
  using namespace lambcast::convergence;
  static const std::vector<Run> runs = study_runs(Recipe{});
  const std::vector<Curve> curves = parse_curves(text, "curves.csv", runs);
  for (const Curve& curve : curves) final_loss(curve);
  parse_curves(curves_csv(curves), "written.csv", runs);
}
