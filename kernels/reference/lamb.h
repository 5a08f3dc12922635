// CPU reference of LAMB and of both stages of 1-bit LAMB, one tensor at a time.
//
//   upd = m / (sqrt(v) + eps) + wd p
//   c   = clamp(||p|| / ||upd||, max_coeff, min_coeff)      trust ratio; 1 if a norm is zero
//   p   = p - lr c upd
//
// If BiasCorrection is on, the moments of step t are corrected for their start from zero: m / (1 -
// b1^t) and v / (1 - b2^t) in upd, or lr sqrt(1 - b2^t) / (1 - b1^t) in place of lr.
//
// In the compression stage v is frozen. A second variance vf follows the gradient reconstructed
// from the averaged momentum, and the trust ratio becomes a frozen coefficient times a factor:
//
//   g'  = (m - b1 m_last) / (1 - b1);   vf = b2 vf + (1 - b2) g' g'
//   f   = max_e (sqrt(v) + eps) / (sqrt(vf) + eps)
//   wd > 0:  q = min(1, ||m / (sqrt(v) + eps)|| / ||upd||);   f = f q + (1 - q)
//   f   = clamp(f, factor_max, factor_min), then clamp(f, f_last (1 +- threshold)), which wins
//   p   = p - lr coefficient f upd
//
// clamp(x, high, low) takes the upper limit first, so that the lower one wins where they cross.
// Norms and the trust ratio are computed in double and rounded to float once.
// Source: DeepSpeed 0.15.4, runtime/fp16/onebit/lamb.py; LAMB arXiv:1904.00962; 1-bit LAMB
// arXiv:2104.06069, algorithm 1.
#pragma once

#include <span>
#include <vector>

#include "kernels/options.h"

namespace lambcast::reference {

struct TrustRatio {
  float value = 1;
  bool defined = false;  // both norms were non-zero
};

// LAMB, and the warm-up stage of 1-bit LAMB. `step` counts from 1 and matters only for bias
// correction.
TrustRatio lamb_step(std::span<float> p, std::span<float> m, std::span<float> v,
                     std::span<const float> g, const LambOptions& options, int step = 1);

// The running average of a tensor's trust ratio over the warm-up stage.
struct RunningCoefficient {
  float average = 0;  // exponential average that starts at 0
  float weight = 0;   // the same average of 1: how much of the mean has been seen
};
void add(RunningCoefficient& running, TrustRatio ratio, double coeff_beta, CoefficientAverage how);
float frozen_coefficient(const RunningCoefficient& running, CoefficientAverage how);

// s_i = mean(r) / r_i with r_i = ||m_i|| / sqrt(numel_i): brings the momenta to a common scale so
// that one compression scale fits them all. A tensor of zero momentum or of no elements gets 1 and
// stays out of the mean. Quirks make either an Error, as it is in DeepSpeed: `zero_momentum_fails`
// the former, by a division by zero; `empty_tensor_poisons` the latter, which leaves every
// coefficient NaN and then has no largest element to take for its factor.
std::vector<float> scaling_coefficients(std::span<const float> m, const TensorLayout& tensors,
                                        const Quirks& quirks);

// Compression stage. `decoded` is the averaged momentum as decompressed, still multiplied by
// `scaling`; m holds the momentum of the step before and receives decoded / scaling * mask (an
// empty mask is all ones), or 0 where v is 0 and Unseen says that the element stays. Updates
// last_factor and returns it.
float onebit_lamb_step(std::span<float> p, std::span<float> m, std::span<const float> v,
                       std::span<float> fresh_v, std::span<const float> decoded,
                       std::span<const float> mask, float scaling, float coefficient,
                       float& last_factor, const OnebitLambOptions& options,
                       Unseen unseen = Unseen::stay);

// The factor after weight decay and both clamps; a NaN passes through.
float clamp_factor(double raw_factor, double momentum_share, float last_factor,
                   const OnebitLambOptions& options);

}  // namespace lambcast::reference
