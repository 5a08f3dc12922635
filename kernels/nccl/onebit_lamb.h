// All of 1-bit LAMB over real GPUs: the state of one rank, and a step of all ranks that a thread
// drives. The algorithm is that of emulated_world/onebit_lamb.h.
//
//   warm-up        all-reduce of the gradient (mean), lamb_step
//   at the freeze  variance copied, coefficients fixed, scaling of the tensors computed
//   compression    worker phase of the momentum, exchange, server phase, gather, onebit_lamb_step
//
// Device memory of a rank, N elements, n ranks: p, m, v and fresh v 16 N, error feedback 4 N + 4
// N/n, signs N/4 + N/8n bytes. A step enqueues on the streams of the ranks, and waits for them only
// to check for overflow. A single rank compresses too; DeepSpeed's does not.
//
// Tensors may belong to groups with their own learning rate and weight decay, momenta may be
// masked, and the last tensors may never freeze: their gradients are all-reduced in both stages.
//
// Source: DeepSpeed 0.15.4, runtime/fp16/onebit/lamb.py; 1-bit LAMB, arXiv:2104.06069.
#pragma once

#include <span>
#include <vector>

#include "kernels/cuda/lamb_tensors.h"
#include "kernels/nccl/replica.h"
#include "kernels/nccl/step.h"
#include "kernels/nccl/tensor_traits.h"

namespace lambcast::cuda {

class OnebitLamb : public Replica {
 public:
  // Allocates on the current device. Uses only these quirks: `padding`, `persistent_tail`,
  // `coefficient_average`, `unseen`. `persistent_tail` needs all tensors to freeze. Throws Error
  // for freeze_step < 1 and for weights or traits that do not fit the tensors.
  OnebitLamb(const TensorLayout& tensors, std::span<const float> initial, int ranks, int rank,
             const OnebitLambOptions& options, const Quirks& quirks = {},
             const TensorTraits& traits = {});

  bool compresses() const {
    return steps_ >= options_.freeze_step;
  }  // whether the next step compresses
  Step next() const { return compresses() ? Step::onebit : Step::full; }
  // Writes the sum |v| of each tensor that will be compressed, which decides when compression may
  // begin (reference/freeze.h). Doubles in device memory, with the same bits on all ranks; 4 bytes
  // per element.
  cudaError_t variance_norms(double* norms, cudaStream_t stream) const {
    return cuda::variance_norms(state(per_tensor_), norms, stream);
  }
  // Ends the warm-up after the steps taken so far, instead of after freeze_step. Call it on all
  // ranks. Returns cudaErrorInvalidValue before the first step.
  cudaError_t begin_compression(cudaStream_t stream);
  // Counts a replay of a CUDA graph that captured a step without the overflow check. Call it for
  // every launch except the first, since the capture was counted. The last step of the warm-up must
  // not be a replay, because it computes more.
  cudaError_t count_replayed_step(cudaStream_t stream) { return finish(stream); }
  // Returns all state that the next step depends on, including this rank's errors and learning rate
  // (but not traits and options); waits for the device. A run loaded into another object continues
  // with the same bits. load() throws Error{Exit::usage} with one line, and changes nothing, if the
  // state is of another version, optimizer, rank or set of tensors.
  std::vector<std::byte> save() const;
  void load(std::span<const std::byte> state);

  // The parts of a step (step.h). From element compressed_elements() on, gradients are averaged in
  // the compression stage too.
  std::size_t compressed_elements() const { return compressing_.elements(); }
  cudaError_t full_step(const Gradient& mean_gradient, cudaStream_t stream);
  cudaError_t compress(const Gradient& gradient, cudaStream_t stream);
  std::span<CompressedAllreduce> exchanges() { return {&exchange_, 1}; }
  // Reads from `gradient` only the tensors that never freeze: their unscaled mean over the ranks.
  cudaError_t apply(const float* gradient, cudaStream_t stream);

  template <typename Self, typename Visit>
  static void each_state(Self& self, Visit& visit) {
    visit(self.steps_);
    visit(self.options_.freeze_step);
    visit(self.lr_.host);
    for (auto* const buffer :
         {&self.p_, &self.m_, &self.v_, &self.fresh_v_, &self.scaling_, &self.last_factor_}) {
      visit(*buffer);
    }
    visit(self.lr_.device);
    for (auto* const tensors : {&self.per_tensor_, &self.never_freezing_}) {
      visit(tensors->running_average);
      visit(tensors->running_weight);
    }
    CompressedAllreduce::each_state(self.exchange_, visit);
  }

 private:
  cudaError_t finish(cudaStream_t stream);
  cudaError_t freeze(cudaStream_t stream);
  LambState state(const LambTensors& of) const {
    return of.state(p_.data(), m_.data(), v_.data(), copy_, lr_.device.data());
  }
  StateLayout layout() const;

  TensorLayout compressing_;  // the tensors before those that never freeze
  OnebitLambOptions options_;
  CompressedAllreduce exchange_;
  DeviceBuffer<float> m_, v_, fresh_v_;  // m with its padding
  DeviceBuffer<float> mask_, scaling_, last_factor_;
  DeviceBuffer<std::size_t> offsets_;
  LambTensors per_tensor_, never_freezing_;
};

using OnebitLambRank = Rank<OnebitLamb>;

// Makes one step. Throws Error{Exit::failure} naming the call or the rank that failed.
Step onebit_lamb_step(const NcclApi& nccl, std::span<const OnebitLambRank> ranks,
                      const GradientOptions& options = {});

}  // namespace lambcast::cuda
