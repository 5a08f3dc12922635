// CPU reference of LARS, layer-wise adaptive rate scaling over momentum SGD:
//
//   ratio = trust |p| / (|g| + weight_decay |p| + eps), 1 if |p| or |g| is zero
//   v = momentum v + lr ratio (g + weight_decay p);   p = p - v
//
// Source: arXiv:1708.03888, algorithm 1 (the rate inside the momentum).
#pragma once

#include "kernels/reference/part.h"

namespace lambcast::reference {

struct LarsOptions {
  double lr = 0.1;
  double momentum = 0.9;
  double weight_decay = 0;
  double trust_coefficient = 0.001;
  double eps = 0;
};

struct Lars {
  LarsOptions options;

  struct State {
    std::vector<float> velocity;
    double ratio = 1;
  };
  State state(const Part& part) const;
  int rounds(int) const { return 1; }
  Sums sums(int round, const View& x, State& state, int step) const;  // |p|^2, |g|^2
  void take(int round, const View& x, State& state, const Sums& total, int step) const;
  void apply(const View& x, State& state, int step) const;
};

}  // namespace lambcast::reference
