// Wall time of the points of a curve. Step times are forecast for a large run with the same
// optimizer, exchange and stage: BERT-Large at sequence length 128, 16 sequences per GPU, on the
// cluster and the GPUs of a Clock. The loss is that of the small problem, the time that of the
// large run; README.md explains what follows from that.
#pragma once

#include <string>
#include <vector>

#include "experiments/convergence/training.h"

namespace lambcast::convergence {

struct StepTimes {
  double warm_up_s = 0, after_s = 0;  // equal if the run has one kind of step
};
struct Clock {
  std::string cluster = "commodity-10gbe";  // a preset or a file
  int gpus = 64;
};
// Forecasts the step times of a run. qgZ leaves each rank its shard of the sums, so it is forecast
// with ZeRO stage 1. Throws Error if the cluster cannot run it.
StepTimes step_times(const Run& run, int steps, const Clock& clock = {});
double hours_at(const Curve& curve, const StepTimes& times, int step);

struct Outcome {
  const Curve* curve = nullptr;
  double loss = 0, held_out = 0;  // at the end of the run
  StepTimes times;
  double hours = 0;  // time of all steps
  // First step from which the curve stays at or below the level; 0 if there is none.
  int steps_to_level = 0;
  double hours_to_level = 0;
};
struct Study {
  double level = 0;  // loss to which every run of the family is timed
  std::vector<Outcome> outcomes;
};
// Judges the curves of LAMB or of Adam. The level is the final loss of the plain optimizer plus
// `above`. Throws Error if there is no curve of that optimizer.
Study judge(const std::vector<Curve>& curves, bool lamb, double above, const Clock& clock = {});
std::string study_csv(const std::vector<Study>& studies);

}  // namespace lambcast::convergence
