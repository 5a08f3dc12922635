// Common parts of the emulated optimizers: the gradients of n ranks on their way to the optimizer.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "kernels/options.h"
#include "kernels/reference/half.h"
#include "kernels/step.h"

namespace lambcast::emulated {

// One flat gradient per rank, from its own backward pass.
using Gradients = std::span<const std::vector<float>>;

struct World {
  TensorLayout tensors;
  int ranks = 1;
  std::vector<float> initial;            // initial weights of all ranks
  double gradient_clipping = 0;          // limit of the gradient norm; 0 is off
  std::vector<float> mask;               // mask of the momentum; empty: all ones
  std::vector<ParameterGroup> group_of;  // group of every tensor; empty: the options apply to all
  // Tensors in groups with DeepSpeed's key non_freeze, which are never compressed; empty: none.
  std::vector<bool> non_freeze;
  int accumulation_steps = 1;  // both only affect releases whose LossScaling is wrong;
  double loss_scale = 1;       // gradients are given correctly scaled
  Quirks quirks;

  std::size_t size() const { return static_cast<std::size_t>(ranks); }
};

// Throws Error if ranks < 1, if weights, mask, group_of or non_freeze do not fit the tensors, or if
// a group does not move.
void check(const World& world);
// Throws Error if `value` < 1: a stage without steps has no variance to freeze.
void check_freeze_step(const char* key, int value, DryRun dry_run);

// Returns the mean over the ranks, summed in double.
std::vector<float> mean(Gradients gradients);
// Returns the mean of an engine in 16 bits (GradientSum::half and bfloat16), of gradients without
// their loss scale.
std::vector<float> half_mean(Gradients gradients, double loss_scale, reference::HalfFormat format);

// Returns the gradients for the optimizer, clipped: all equal to the mean if the engine averages
// them (`engine_allreduce`), else each rank's own. Absent if a gradient overflowed and the world
// checks for it.
std::optional<std::vector<std::vector<float>>> reduce(const World& world, Gradients gradients,
                                                      bool engine_allreduce);

}  // namespace lambcast::emulated
