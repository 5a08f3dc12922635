// When would a curve have come to its points? Steps take what the forecast of a large run says for
// the same optimizer, exchange and stage: BERT-Large at sequence 128, 16 sequences a GPU, on the
// cluster and the GPUs of a Clock. The loss is the small problem's, the time the large
// run's: what that does and does not say is in README.md.
#pragma once

#include <string>
#include <vector>

#include "experiments/convergence/training.h"

namespace lambcast::convergence {

struct StepTimes {
  double warm_up_s = 0, after_s = 0;  // alike where a run has one kind of step
};
struct Clock {
  std::string cluster = "commodity-10gbe";  // a preset or a file
  int gpus = 64;
};
// qgZ leaves every rank its share of the sums: with ZeRO stage 1, as the forecast asks for. Throws
// Error where the run cannot be forecast there.
StepTimes step_times(const Run& run, int steps, const Clock& clock = {});
double hours_at(const Curve& curve, const StepTimes& times, int step);

struct Outcome {
  const Curve* curve = nullptr;
  double loss = 0, held_out = 0;  // at the end
  StepTimes times;
  double hours = 0;  // of all steps
  // The first point from which on the curve stays at or below the level; 0 where it never does.
  int steps_to_level = 0;
  double hours_to_level = 0;
};
struct Study {
  double level = 0;  // loss that every run of the family is timed to
  std::vector<Outcome> outcomes;
};
// Of the curves that learn with LAMB, or with Adam. The level lies `above` the loss at which the
// plain optimizer ends. Throws Error where there is no curve of that one.
Study judge(const std::vector<Curve>& curves, bool lamb, double above, const Clock& clock = {});
std::string study_csv(const std::vector<Study>& studies);

}  // namespace lambcast::convergence
