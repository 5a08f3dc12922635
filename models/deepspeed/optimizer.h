// The `optimizer` block: its type, and every hyper-parameter of the modelled optimizers with the
// defaults of DeepSpeed's constructors.
//
// Source: DeepSpeed 0.16.5, runtime/fp16/onebit/{adam,lamb,zoadam}.py, ops/adam/fused_adam.py,
// ops/lamb/fused_lamb.py and _configure_basic_optimizer in runtime/engine.py.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "models/deepspeed/section.h"
#include "models/optimizer/optimizer_model.h"
#include "sim/collectives/backend.h"

namespace lambcast::deepspeed {

using lambcast::backend_of;

// One structure for all types; hyper-parameters that a type does not have keep their defaults.
struct OptimizerConfig {
  OptimizerType type = OptimizerType::adam;
  int line = 0;  // line of the type

  Setting<double> lr{1e-3};
  Setting<std::array<double, 2>> betas{{0.9, 0.999}};
  Setting<double> eps{1e-8};
  Setting<double> weight_decay{0.0};
  Setting<bool> bias_correction{true};  // has no effect in the 1-bit optimizers
  Setting<bool> eps_inside_sqrt{false};
  Setting<bool> amsgrad{false};
  Setting<bool> adam_w_mode{true};
  Setting<bool> torch_adam{false};
  Setting<bool> set_grad_none{true};

  Setting<double> max_coeff{10.0};
  Setting<double> min_coeff{0.01};

  Setting<Whole> freeze_step{100000};              // onebit_adam, onebit_lamb: start of compression
  Setting<std::string> comm_backend_name{"nccl"};  // or hccl, which is not modelled
  Setting<bool> cuda_aware{false};                 // used only by the mpi backend

  Setting<double> coeff_beta{0.9};
  Setting<double> factor_max{4.0};
  Setting<double> factor_min{0.5};
  Setting<double> factor_threshold{0.1};

  Setting<Whole> var_freeze_step{100000};
  Setting<Whole> var_update_scaler{16};     // kappa
  Setting<Whole> local_step_scaler{32678};  // DeepSpeed's default (not 32768)
  Setting<Whole> local_step_clipper{16};    // H
};

// Returns nothing for hccl, which is not modelled.
std::optional<Backend> backend_of(const OptimizerConfig& config);

// Reads the `optimizer` block of `root`. Returns nothing if it is absent or names no type, in which
// case the training script creates the optimizer.
//
// Throws Error for a type that is not modelled, a backend that DeepSpeed does not have, and wrong
// types. Settings that only DeepSpeed's constructors refuse (unknown keyword, max_grad_norm,
// amsgrad) become findings of severity error with DeepSpeed's text.
std::optional<OptimizerConfig> read_optimizer(const Section& root);

}  // namespace lambcast::deepspeed
