// Hyper-parameters of the optimizers, under DeepSpeed's names, shared by the CPU references and the
// CUDA kernels, and the quirks of DeepSpeed as options whose default is the correct behaviour.
//
// Notation: p weights, g gradient, m = exp_avg, v = exp_avg_sq, b1, b2 betas, lr step length.
// Decimal constants are double and rounded to float once, as PyTorch does with Python floats.
//
// Sources: DeepSpeed 0.15.4, runtime/fp16/onebit/{lamb,adam,zoadam}.py (the last release with
// correct 1-bit numerics under gradient accumulation); LAMB arXiv:1904.00962, 1-bit Adam
// arXiv:2102.02888, 1-bit LAMB arXiv:2104.06069, 0/1 Adam arXiv:2202.06009.
#pragma once

#include <span>

#include "kernels/layout.h"

namespace lambcast {

// How the moments, which start from zero, are scaled in the first steps; step t counts from 1.
enum class BiasCorrection {
  none,
  in_moments,  // m / (1 - b1^t), v / (1 - b2^t): the papers of Adam and LAMB, NVIDIA's Apex
  in_rate,     // lr sqrt(1 - b2^t) / (1 - b1^t), which changes the weight of eps and weight decay:
               // DeepSpeed's FusedLamb by default (csrc/lamb), Colossal-AI's DistributedLamb
};

// Settings of a tensor's parameter group. Recipes have at least two groups: weights have decay;
// biases and the weights of LayerNorm do not. A group's learning rate is a multiple of the
// optimizer's, so that one schedule sets all groups. For DeepSpeed's absolute rates it is their
// quotient.
struct ParameterGroup {
  double lr_scale = 1;
  double weight_decay = 0;
  bool operator==(const ParameterGroup&) const = default;
};

struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;             // added to sqrt(v), outside the root
  double weight_decay = 0;       // decoupled: the update gains weight_decay * p
  bool bias_correction = false;  // plain Adam's; the 1-bit optimizers have none and ignore it
};

struct LambOptions {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  double max_coeff = 10.0;  // clamps of the trust ratio
  double min_coeff = 0.01;
  BiasCorrection bias_correction = BiasCorrection::none;  // for plain LAMB; 1-bit LAMB has none
};

// Returns the options of tensor t; group_of has the group of every tensor, and if it is empty, all
// tensors have the same options.
template <typename Options>
Options in_group(Options options, std::span<const ParameterGroup> group_of, std::size_t t) {
  if (group_of.empty()) return options;
  options.lr *= group_of[t].lr_scale;
  options.weight_decay = group_of[t].weight_decay;
  return options;
}

struct OnebitAdamOptions {
  AdamOptions adam;
  int freeze_step = 100000;
};

struct OnebitLambOptions {
  LambOptions lamb;
  int freeze_step = 100000;
  double coeff_beta = 0.9;  // average of the trust ratio in warm-up
  double factor_max = 4.0;  // limits of the factor in the compression stage ...
  double factor_min = 0.5;
  double factor_threshold = 0.1;  // ... and of its change from step to step, which takes precedence
};

struct ZeroOneAdamOptions {
  AdamOptions adam;
  int var_freeze_step = 100000;
  int var_update_scaler = 16;     // kappa: the variance interval doubles every kappa updates
  int local_step_scaler = 32678;  // sic; the local interval doubles after this many steps
  int local_step_clipper = 16;    // largest local interval
};

// Handling of the first step of a DeepSpeed 1-bit optimizer. The first call of step() only
// initialises the state, but sets state.step to 1.
enum class DryRun {
  none,               // correct: freeze_step = F gives F warm-up updates
  at_construction,    // DeepSpeed with fp16: F - 1 warm-up updates (one for F <= 2)
  on_first_gradient,  // DeepSpeed in fp32: the same, and the first gradient is lost
};

// Definition of the running average of the trust ratio.
enum class CoefficientAverage {
  bias_corrected,  // correct: the mean of the ratios seen, 1 if none was defined
  from_zero,       // DeepSpeed: starts at 0 and skips ratios of exactly 1
};

// The norm that gradient clipping compares with its limit in the compression stage, when every rank
// has its own gradient.
enum class ClipNorm {
  shared,  // correct: root mean square over the ranks, so that all use one factor
  local,   // DeepSpeed: each rank clips by the norm of its own gradient
};

// Releases whose engine scales the loss wrongly when its own gradient all-reduce is switched off,
// which is the compression stage of every 1-bit optimizer.
enum class LossScaling {
  right,                     // up to 0.15.4
  no_accumulation_division,  // 0.16.0 to 0.18.2: gradients are too large by the accumulation steps
  no_loss_scale_multiplication  // 0.18.3 and later: the loss scale is divided out but not
                                // multiplied
};

// The engine's summation of gradients before the optimizer gets them.
enum class GradientSum {
  full_precision,  // correct
  half,            // DeepSpeed under fp16: the scaled gradient, every partial sum and the mean are
                   // rounded to fp16
  bfloat16         // the same in bf16
};

// Treatment in the compression stage of weights without a gradient when their variance was last
// updated: v is 0 on all ranks. Examples are rows of an embedding whose token did not occur. One
// bit cannot encode 0, so the average there is a scale, divided by eps only.
enum class Unseen {
  stay,  // correct: the average counts as 0 there, and only weight decay moves them
  move,  // DeepSpeed: by lr scale / eps, unless the script masks their momentum
};

struct Quirks {
  Padding padding = Padding::excluded;
  bool persistent_tail = false;  // 1-bit LAMB: the padding feeds back its own decoded value
  DryRun dry_run = DryRun::none;
  CoefficientAverage coefficient_average = CoefficientAverage::bias_corrected;
  bool fresh_variance_on_equality = false;  // copied only if step == freeze_step exactly
  bool zero_momentum_fails = false;         // a tensor with zero momentum divides by zero
  bool empty_tensor_poisons = false;        // 1-bit LAMB: an empty tensor makes the scaling of
                                            // all NaN and fails the first compressed step
  ClipNorm clip_norm = ClipNorm::shared;
  bool overflow_poisons = false;  // no overflow check (DeepSpeed in fp32): NaN reaches all ranks
  bool lone_rank_keeps_momentum = false;  // 0/1 Adam on one rank skips its momentum update
  bool zero_lr_poisons = false;           // 0/1 Adam: a synchronisation after learning rates of 0
                                          // divides the momentum by 0
  Unseen unseen = Unseen::stay;
  LossScaling loss_scaling = LossScaling::right;
  GradientSum gradient_sum = GradientSum::full_precision;
};

// Returns all quirks of DeepSpeed 0.15.4's optimizers under fp16, except for its engine's summation
// of gradients, which is only rounding.
constexpr Quirks deepspeed_quirks() {
  return {.padding = Padding::counted,
          .persistent_tail = true,
          .dry_run = DryRun::at_construction,
          .coefficient_average = CoefficientAverage::from_zero,
          .fresh_variance_on_equality = true,
          .zero_momentum_fails = true,
          .empty_tensor_poisons = true,
          .clip_norm = ClipNorm::local,
          .overflow_poisons = false,
          .lone_rank_keeps_momentum = true,
          .zero_lr_poisons = true,
          .unseen = Unseen::move,
          .loss_scaling = LossScaling::right};
}

}  // namespace lambcast
