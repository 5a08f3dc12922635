// Catches all exceptions at a C interface; their message is kept for lambcast_error().
#pragma once

#include <exception>
#include <string>

#include "kernels/options.h"
#include "kernels/reference/half.h"
#include "kernels/torch/operations.h"

namespace lambcast::torch {

inline std::string& last_error() {
  thread_local std::string text;
  return text;
}

template <typename F>
int guarded(F f) {
  try {
    f();
    return 0;
  } catch (const std::exception& error) {
    last_error() = error.what();
    return 1;
  }
}

inline reference::HalfFormat half_format(int format) {
  return format == LAMBCAST_BF16 ? reference::HalfFormat::bf16 : reference::HalfFormat::fp16;
}
inline AdamOptions adam_options(const lambcast_options& o) {
  return {.lr = o.lr,
          .beta1 = o.beta1,
          .beta2 = o.beta2,
          .eps = o.eps,
          .weight_decay = o.weight_decay,
          .bias_correction = false};
}
inline Unseen unseen(const lambcast_options& o) {
  return o.moves_unseen != 0 ? Unseen::move : Unseen::stay;
}
// The learning rate here is 1 and the decay 0: both come from the group of a tensor.
inline OnebitLambOptions lamb_options(const lambcast_options& o) {
  return {.lamb = {.lr = 1,
                   .beta1 = o.beta1,
                   .beta2 = o.beta2,
                   .eps = o.eps,
                   .weight_decay = 0,
                   .max_coeff = o.max_coeff,
                   .min_coeff = o.min_coeff,
                   .bias_correction = BiasCorrection::none},
          .freeze_step = 1,
          .coeff_beta = o.coeff_beta,
          .factor_max = o.factor_max,
          .factor_min = o.factor_min,
          .factor_threshold = o.factor_threshold};
}

}  // namespace lambcast::torch
