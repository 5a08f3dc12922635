// CPU reference of Adafactor as a rule of part.h. Matrices keep row and column means of g^2 + eps1
// (factored.h), vectors keep every element of it; with beta1 there is also a momentum of the
// update.
//
//   b = 1 - t^decay_rate;   u = g / sqrt(estimate);   u = u / max(1, RMS(u) / clip_threshold)
//   rate = (relative_step ? min(1e-2 or, warming up, 1e-6 t; 1 / sqrt(t)) : lr)
//          * (scale_parameter ? max(eps2, RMS(p)) : 1)
//   p = p - rate weight_decay p - rate u
//
// The last four options are deviations in Colossal-AI's DistributedAdaFactor. Sources:
// arXiv:1804.04235; Colossal-AI nn/optimizer/{adafactor,distributed_adafactor}.py.
#pragma once

#include "kernels/reference/factored.h"

namespace lambcast::reference {

struct AdafactorOptions {
  double lr = 1e-3;  // used if relative_step is off
  double eps1 = 1e-30, eps2 = 1e-3;
  double clip_threshold = 1;
  double decay_rate = -0.8;
  double beta1 = 0;  // 0: no momentum
  double weight_decay = 0;
  bool scale_parameter = true;
  bool relative_step = true;
  bool warmup_init = false;

  bool lr_ignored = false;          // if built directly: always relative_step
  bool rms_stays_zero = false;      // the scale is always eps2
  bool columns_stay_local = false;  // under ZeRO, column means are those of a rank's own rows
  bool columns_summed = false;      // under ZeRO without a tensor-parallel group: the column
                                    // state is summed over all ranks without a division, so it
                                    // grows
};

struct Adafactor {
  AdafactorOptions options;

  struct State {
    FactoredMoment moment;
    Sums own = {};                    // values before the sum over ranks, for columns_stay_local
    std::vector<float> v, m, update;  // v for vectors, m with beta1
    double update_rms = 0, weight_rms = 0;
  };
  State state(const Part& part) const;
  int rounds(int) const { return 2; }
  Sums sums(int round, const View& x, State& state, int step) const;
  void take(int round, const View& x, State& state, const Sums& total, int step) const;
  void apply(const View& x, State& state, int step) const;

  // Return the decay of the second moment, and the learning rate, in a step.
  double beta(int step) const;
  double rate(double weight_rms, int step) const;
};

inline bool is_matrix(const Part& part) { return part.whole.rows > 1; }

}  // namespace lambcast::reference
