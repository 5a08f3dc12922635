// A step of all the ranks that a thread drives, for any optimizer. Every thread or process makes it
// for its own ranks:
//
//   gradients     averaged if the step needs it, and checked; their factor computed (gradients.h)
//   full step     if next() is Step::full
//   one bit       compress, exchange_compressed, apply; in between the mean of tensors that never
//                 freeze
//   local step    if next() is Step::silent: 0/1 Adam
//
// All work is enqueued on the streams of the ranks. Only the overflow check waits.
#pragma once

#include <span>
#include <vector>

#include "kernels/nccl/compressed_allreduce.h"
#include "kernels/nccl/gradients.h"
#include "kernels/nccl/group.h"
#include "kernels/step.h"

namespace lambcast::cuda {

// The arguments of one rank.
template <typename Optimizer>
struct Rank {
  int device = 0;
  Optimizer* optimizer = nullptr;
  float* gradient = nullptr;   // device memory; overwritten, see RankGradient::values
  ncclComm_t* comm = nullptr;  // points to null if it was aborted
  cudaStream_t stream = nullptr;
  // A gradient in fp16 or bf16 instead of `gradient`, which is then needed only if some tensors
  // never freeze.
  HalfPointer half_gradient = {};

  Watched watched() const { return {optimizer->rank(), device, comm, stream}; }
};

template <typename Optimizer>
std::vector<Watched> watched(std::span<const Rank<Optimizer>> ranks) {
  std::vector<Watched> result;
  for (const auto& rank : ranks) result.push_back(rank.watched());
  return result;
}

template <typename Optimizer>
RankGradient arrived_at(const Rank<Optimizer>& rank) {
  return {rank.watched(), rank.optimizer->elements(), rank.half_gradient, rank.gradient,
          &rank.optimizer->norm()};
}
template <typename Optimizer>
std::vector<RankGradient> gradients_of(std::span<const Rank<Optimizer>> ranks) {
  std::vector<RankGradient> result;
  for (const auto& rank : ranks) result.push_back(arrived_at(rank));
  return result;
}
// Returns the gradient that the kernels of a step read, after reduce().
template <typename Optimizer>
Gradient gradient_of(const Rank<Optimizer>& rank, const GradientOptions& options) {
  return unscaled(arrived_at(rank), options);
}

// Makes all exchanges of all ranks in the same two groups.
template <typename Optimizer>
void onebit_step_of(const NcclApi& nccl, std::span<const Rank<Optimizer>> ranks,
                    const GradientOptions& options) {
  std::vector<LocalRank> exchanges;
  on_each(ranks, [&](const auto& rank) {
    require(rank.optimizer->compress(gradient_of(rank, options), rank.stream), "worker phase");
    for (CompressedAllreduce& exchange : rank.optimizer->exchanges()) {
      exchanges.push_back(
          {.device = rank.device, .state = &exchange, .comm = *rank.comm, .stream = rank.stream});
    }
  });
  exchange_compressed(nccl, exchanges);
  const auto gradients = gradients_of(ranks);
  average_unscaled(nccl, gradients, ranks.front().optimizer->compressed_elements(), options);
  on_each(ranks, [](const auto& rank) {
    require(rank.optimizer->apply(rank.gradient, rank.stream), "one-bit step");
  });
}

// Makes the step. Throws Error{Exit::failure} naming the call or the rank that failed.
template <typename Optimizer>
Step step_of(const NcclApi& nccl, std::span<const Rank<Optimizer>> ranks,
             const GradientOptions& options) {
  if (ranks.empty()) return Step::silent;
  const Step kind = ranks.front().optimizer->next();
  const auto gradients = gradients_of(ranks);
  if (!reduce(nccl, gradients, kind == Step::full, options)) return Step::skipped;
  if (kind == Step::onebit) {
    onebit_step_of(nccl, ranks, options);
    return kind;
  }
  on_each(ranks, [&](const auto& rank) {
    const Gradient gradient = gradient_of(rank, options);
    if constexpr (requires { rank.optimizer->local_step(gradient, rank.stream); }) {
      if (kind == Step::silent) {
        require(rank.optimizer->local_step(gradient, rank.stream), "local step");
        return;
      }
    }
    require(rank.optimizer->full_step(gradient, rank.stream), "full step");
  });
  return kind;
}

}  // namespace lambcast::cuda
