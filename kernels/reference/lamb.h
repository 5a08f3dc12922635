// CPU reference of LAMB and of both stages of 1-bit LAMB, one tensor at a time.
//
//   upd = m / (sqrt(v) + eps) + wd p
//   c   = clamp(||p|| / ||upd||, max_coeff, min_coeff)      trust ratio; 1 if a norm is zero
//   p   = p - lr c upd
//
// With BiasCorrection, the moments of step t are corrected for their start from zero: m / (1 -
// b1^t) and v / (1 - b2^t) in upd, or lr sqrt(1 - b2^t) / (1 - b1^t) instead of lr.
//
// In the compression stage v is frozen. A second variance vf is updated with the gradient
// reconstructed from the averaged momentum, and the trust ratio becomes a frozen coefficient times
// a factor:
//
//   g'  = (m - b1 m_last) / (1 - b1);   vf = b2 vf + (1 - b2) g' g'
//   f   = max_e (sqrt(v) + eps) / (sqrt(vf) + eps)
//   wd > 0:  q = min(1, ||m / (sqrt(v) + eps)|| / ||upd||);   f = f q + (1 - q)
//   f   = clamp(f, factor_max, factor_min), then clamp(f, f_last (1 +- threshold)), which wins
//   p   = p - lr coefficient f upd
//
// clamp(x, high, low) applies the upper limit first, so that the lower one wins if they cross.
// Norms and the trust ratio are computed in double and rounded to float once. Source: DeepSpeed
// 0.15.4, runtime/fp16/onebit/lamb.py; LAMB arXiv:1904.00962; 1-bit LAMB arXiv:2104.06069,
// algorithm 1.
#pragma once

#include <span>
#include <vector>

#include "kernels/options.h"

namespace lambcast::reference {

struct TrustRatio {
  float value = 1;
  bool defined = false;  // whether both norms are non-zero
};

// Makes a step of LAMB, or of the warm-up stage of 1-bit LAMB. `step` counts from 1 and is used
// only for bias correction.
TrustRatio lamb_step(std::span<float> p, std::span<float> m, std::span<float> v,
                     std::span<const float> g, const LambOptions& options, int step = 1);

// The running average of a tensor's trust ratio over the warm-up stage.
struct RunningCoefficient {
  float average = 0;  // exponential average that starts at 0
  float weight = 0;   // the same average of 1: the weight of all ratios so far
};
void add(RunningCoefficient& running, TrustRatio ratio, double coeff_beta, CoefficientAverage how);
float frozen_coefficient(const RunningCoefficient& running, CoefficientAverage how);

// Returns s_i = mean(r) / r_i with r_i = ||m_i|| / sqrt(numel_i), which scales the momenta to a
// common size so that one compression scale fits them all. A tensor with zero momentum or no
// elements gets 1 and is left out of the mean. Quirks turn these cases into an Error, as in
// DeepSpeed: `zero_momentum_fails` for zero momentum, because of a division by zero;
// `empty_tensor_poisons` for an empty tensor, which makes every coefficient NaN and has no largest
// element for its factor.
std::vector<float> scaling_coefficients(std::span<const float> m, const TensorLayout& tensors,
                                        const Quirks& quirks);

// Makes a step of the compression stage. `decoded` is the decompressed averaged momentum, still
// multiplied by `scaling`. m holds the momentum of the previous step and receives decoded / scaling
// * mask (an empty mask is all ones), or 0 if v is 0 and Unseen::stay is set. Updates last_factor
// and returns it.
float onebit_lamb_step(std::span<float> p, std::span<float> m, std::span<const float> v,
                       std::span<float> fresh_v, std::span<const float> decoded,
                       std::span<const float> mask, float scaling, float coefficient,
                       float& last_factor, const OnebitLambOptions& options,
                       Unseen unseen = Unseen::stay);

// Returns the factor after weight decay and both clamps; a NaN passes through.
float clamp_factor(double raw_factor, double momentum_share, float last_factor,
                   const OnebitLambOptions& options);

}  // namespace lambcast::reference
