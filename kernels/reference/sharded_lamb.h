// LAMB on a part of a tensor, as a rule of part.h: lamb_step() with its norms summed over ranks.
// Two numbers per tensor are sent: Colossal-AI's DistributedLamb all-reduces them tensor by tensor
// and waits on the host for each ratio; Apex's DistributedFusedLAMB sends one vector for all
// tensors.
//
// Colossal-AI's has bias correction in_rate, min_coeff 0 and max_coeff infinite (no clamps).
// Sources: Colossal-AI nn/optimizer/distributed_lamb.py; Apex
// contrib/optimizers/distributed_fused_lamb.py.
#pragma once

#include "kernels/options.h"
#include "kernels/reference/part.h"

namespace lambcast::reference {

struct ShardedLamb {
  LambOptions options;
  // Whether the weights' norm is computed from the 16-bit working copy, as in Colossal-AI under
  // ZeRO.
  bool norm_of_half_weights = false;

  struct State {
    std::vector<float> m, v, update;
    double ratio = 1;
  };
  State state(const Part& part) const;
  int rounds(int) const { return 1; }
  Sums sums(int round, const View& x, State& state, int step) const;  // |p|^2, |update|^2
  void take(int round, const View& x, State& state, const Sums& total, int step) const;
  void apply(const View& x, State& state, int step) const;
};

}  // namespace lambcast::reference
