// Selects the kind of each step of 0/1 Adam; both intervals start at 1:
//
//   not frozen  step % var_interval == 0: full, else 1-bit; the interval doubles after every kappa
//               full steps
//   frozen      step % local_interval == 0: 1-bit, else silent; every local_step_scaler steps the
//               interval doubles, up to local_step_clipper
//
// Source: DeepSpeed 0.15.4, runtime/fp16/onebit/zoadam.py; 0/1 Adam, arXiv:2202.06009.
#pragma once

#include "kernels/options.h"
#include "kernels/step.h"

namespace lambcast {

struct ZeroOnePolicy {
  int var_interval = 1;
  int var_counter = 0;
  int local_interval = 1;
  int local_counter = 0;
  bool frozen = false;
};

// kind_of() returns the kind of step `step`, advance() computes the policy after it. `updates` is
// the number of steps that moved the weights, including this one; it differs from `step` by
// DeepSpeed's dry run.
Step kind_of(const ZeroOnePolicy& policy, int step);
void advance(ZeroOnePolicy& policy, int step, int updates, const ZeroOneAdamOptions& options);

}  // namespace lambcast
