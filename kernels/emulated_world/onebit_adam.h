// 1-bit Adam over n ranks: Adam without bias correction on averaged gradients until the freeze;
// then a frozen variance and one compressed_allreduce of the momentum per tensor. DeepSpeed's fp16
// wrapper flattens each parameter group into one tensor; in fp32 each tensor is sent separately.
// Pass the tensors as they are sent.
//
// Tensors of non_freeze groups are not compressed. After the freeze the optimizer still averages
// their gradients in full precision, after clipping, and updates both their moments.
//
// Padding is per tensor and zero in each call, but has an error if it is counted. A single rank
// does not compress. Source: DeepSpeed 0.15.4, runtime/fp16/onebit/adam.py; 1-bit Adam,
// arXiv:2102.02888.
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
  bool engine_allreduce = true;  // whether the engine averages the gradients
  bool dry_run_pending = false;
};

OnebitAdam onebit_adam(const World& world, const OnebitAdamOptions& options);
Step step(OnebitAdam& optimizer, Gradients gradients);
// Ends the warm-up after the steps taken so far, at least one, for a monitor of the variance
// (reference/freeze.h). freeze_step becomes the number of these steps.
void begin_compression(OnebitAdam& optimizer);

inline std::span<const float> weights(const OnebitAdam& optimizer, int rank) {
  return optimizer.ranks[static_cast<std::size_t>(rank)].p;
}

// Resumes as DeepSpeed does when it loads a checkpoint into a new process. Error feedback is lost,
// and a step below the (possibly raised) freeze_step returns the optimizer to warm-up. In fp32
// (DryRun::on_first_gradient) the dry run follows the loading. It quantises the loaded momenta and
// drops the error of the last tensor of each group. After the freeze each rank then takes one step
// on its own gradient, variance included, so that the replicas diverge permanently. For a correct
// resume, copy the optimizer.
void resume_as_deepspeed(OnebitAdam& optimizer);

// Averages tensor t of all ranks' flat buffers with one compressed_allreduce; does nothing for a
// single rank.
void average_tensor(const World& world, std::size_t t, std::span<const std::span<float>> flat,
                    ErrorFeedback& errors);
std::vector<ErrorFeedback> errors_per_tensor(const World& world);

}  // namespace lambcast::emulated
