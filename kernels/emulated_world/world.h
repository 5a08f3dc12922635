// Common parts of the emulated optimizers: the gradients of n ranks on their way to the optimizer.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "kernels/options.h"
#include "kernels/reference/half.h"
#include "kernels/step.h"

namespace lambcast::emulated {

// One flat gradient per rank, as its own backward pass left it.
using Gradients = std::span<const std::vector<float>>;

struct World {
  TensorLayout tensors;
  int ranks = 1;
  std::vector<float> initial;            // the weights all ranks start from
  double gradient_clipping = 0;          // limit of the gradient norm; 0 is off
  std::vector<float> mask;               // of the momentum; empty is all ones
  std::vector<ParameterGroup> group_of;  // of every tensor; empty: the options hold for all
  // Tensors whose group has DeepSpeed's key non_freeze, never compressed; empty is none.
  std::vector<bool> non_freeze;
  int accumulation_steps = 1;  // these two only say how wrong LossScaling is where it is wrong;
  double loss_scale = 1;       // gradients are given as they should be
  Quirks quirks;

  std::size_t size() const { return static_cast<std::size_t>(ranks); }
};

// Throws Error when ranks < 1, when weights, mask, group_of or non_freeze do not fit the tensors,
// or for a group that does not move.
void check(const World& world);
// Throws Error when `value` < 1: a stage of no steps has no variance to freeze.
void check_freeze_step(const char* key, int value, DryRun dry_run);

// The mean over the ranks, summed in double.
std::vector<float> mean(Gradients gradients);
// The mean as an engine in 16 bits takes it (GradientSum::half and bfloat16), of gradients without
// their loss scale.
std::vector<float> half_mean(Gradients gradients, double loss_scale, reference::HalfFormat format);

// The gradients as the optimizer sees them, clipped: all equal to the mean where the engine
// averages them (`engine_allreduce`), else each rank's own. Nothing when a gradient overflowed and
// the world checks for it.
std::optional<std::vector<std::vector<float>>> reduce(const World& world, Gradients gradients,
                                                      bool engine_allreduce);

}  // namespace lambcast::emulated
