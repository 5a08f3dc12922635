// The factors that correct the bias of Adam's moments (arXiv:1412.6980, section 3), computed in
// double and rounded once:
//
//   update = momentum m / (root sqrt(v) + eps);   the learning rate is multiplied by rate
#pragma once

#include <cmath>

#include "kernels/options.h"

namespace lambcast {

struct BiasFactors {
  float momentum = 1, root = 1;
  double rate = 1;
};

// Returns the factors of step `step`, counted from 1; for step 0 they are 1.
inline BiasFactors bias_factors(BiasCorrection how, double beta1, double beta2, int step) {
  if (how == BiasCorrection::none || step < 1) return {};
  const double momentum = 1 - std::pow(beta1, step), root = std::sqrt(1 - std::pow(beta2, step));
  if (how == BiasCorrection::in_rate) return {.rate = root / momentum};
  return {.momentum = static_cast<float>(1 / momentum), .root = static_cast<float>(1 / root)};
}

}  // namespace lambcast
