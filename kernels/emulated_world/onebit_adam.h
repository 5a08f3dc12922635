// 1-bit Adam over n ranks: Adam without bias correction on averaged gradients until the freeze;
// then a frozen variance and one compressed_allreduce of the momentum per tensor. DeepSpeed's fp16
// wrapper flattens every parameter group into one tensor, in fp32 every tensor travels alone: give
// the tensors as they travel.
//
// Padding is per tensor and zero again in every call, though it owes an error where it counts.
// One rank alone does not compress. Left out: DeepSpeed's groups with non_freeze set.
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
  bool dry_run_pending = false;
};

OnebitAdam onebit_adam(const World& world, const OnebitAdamOptions& options);
Step step(OnebitAdam& optimizer, Gradients gradients);

inline std::span<const float> weights(const OnebitAdam& optimizer, int rank) {
  return optimizer.ranks[static_cast<std::size_t>(rank)].p;
}

// One compressed_allreduce per tensor of the flat buffers, masked afterwards.
void average_per_tensor(const World& world, std::span<const std::span<float>> flat,
                        std::vector<ErrorFeedback>& errors);
std::vector<ErrorFeedback> errors_per_tensor(const World& world);

}  // namespace lambcast::emulated
