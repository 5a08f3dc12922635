// 1-bit Adam over n ranks: Adam without bias correction on averaged gradients until the freeze;
// then a frozen variance and one compressed_allreduce of the momentum per tensor. DeepSpeed's fp16
// wrapper flattens every parameter group into one tensor, in fp32 every tensor travels alone: give
// the tensors as they travel.
//
// Tensors of non_freeze groups stay out of compression: after the freeze their gradients are still
// averaged in full precision, by the optimizer itself and after clipping, and both their moments go
// on moving.
//
// Padding is per tensor and zero again in every call, though it owes an error where it counts.
// One rank alone does not compress.
// Source: DeepSpeed 0.15.4, runtime/fp16/onebit/adam.py; 1-bit Adam, arXiv:2102.02888.
#pragma once

#include "kernels/emulated_world/compressed_allreduce.h"
#include "kernels/emulated_world/world.h"

namespace lambcast::emulated {

struct OnebitAdam {
  struct Rank {
    std::vector<float> p, m, v;
  };

  World world;
  OnebitAdamOptions options;
  std::vector<Rank> ranks;
  std::vector<ErrorFeedback> errors;  // per tensor
  int step = 0;
  bool frozen = false;
  bool engine_allreduce = true;  // the engine averages the gradients
  bool dry_run_pending = false;
};

OnebitAdam onebit_adam(const World& world, const OnebitAdamOptions& options);
Step step(OnebitAdam& optimizer, Gradients gradients);
// Ends the warm-up after the steps taken so far, of which there must be one: what a monitor of the
// variance asks for (reference/freeze.h). freeze_step becomes the step it is.
void begin_compression(OnebitAdam& optimizer);

inline std::span<const float> weights(const OnebitAdam& optimizer, int rank) {
  return optimizer.ranks[static_cast<std::size_t>(rank)].p;
}

// What DeepSpeed does when it loads a checkpoint into a new process: owed errors are lost, and a
// step below the (possibly raised) freeze_step returns it to warm-up. In fp32 (DryRun::
// on_first_gradient) the dry run comes after loading: it quantises the loaded momenta and drops
// what that owes, and past the freeze every rank then takes one step on its own gradient, variance
// included, so that the replicas part for good. Of what that dry run owes, only the last tensor of
// each group is dropped. A right resume is a copy of the optimizer.
void resume_as_deepspeed(OnebitAdam& optimizer);

// The average of tensor t over all ranks' flat buffers by one compressed_allreduce; on one rank
// alone nothing happens.
void average_tensor(const World& world, std::size_t t, std::span<const std::span<float>> flat,
                    ErrorFeedback& errors);
std::vector<ErrorFeedback> errors_per_tensor(const World& world);

}  // namespace lambcast::emulated
