// CPU reference of CAME as a rule of part.h: Adafactor's update with a momentum, divided by the
// deviation of the update from it.
//
//   u as Adafactor's with a constant b2, clipped;   m = b1 m + (1 - b1) u
//   x = (u - m)^2 + eps2, factored with b3
//   p = p - lr weight_decay p - lr m / sqrt(estimate of x)
//
// Vectors: p = p - lr m. `residual_in_moment`: as in Colossal-AI's DistributedCAME, both
// factored moments share one buffer from the second step on. Sources: CAME, arXiv:2307.02047,
// algorithm 2; Colossal-AI nn/optimizer/distributed_came.py.
#pragma once

#include "kernels/reference/adafactor.h"

namespace lambcast::reference {

struct CameOptions {
  double lr = 2e-4;
  double eps1 = 1e-30, eps2 = 1e-16;
  double clip_threshold = 1;
  double beta1 = 0.9, beta2 = 0.999, beta3 = 0.9999;
  double weight_decay = 0;

  bool residual_in_moment = false;                          // both moments share one memory
  bool columns_stay_local = false, columns_summed = false;  // as in Adafactor
};

struct Came {
  CameOptions options;

  struct State {
    FactoredMoment moment, residual;
    Sums own = {};  // values before the sum over ranks, for columns_stay_local
    std::vector<float> v, m, update;
    double update_rms = 0;
  };
  State state(const Part& part) const;
  int rounds(int) const { return 3; }
  Sums sums(int round, const View& x, State& state, int step) const;
  void take(int round, const View& x, State& state, const Sums& total, int step) const;
  void apply(const View& x, State& state, int step) const;
};

}  // namespace lambcast::reference
