// The whole of 1-bit LAMB over real GPUs: the state of one rank, and a step of all ranks that a
// thread drives. What emulated_world/onebit_lamb.h says of the algorithm holds here.
//
//   warm-up        all-reduce of the gradient (mean), lamb_step
//   at the freeze  variance copied, coefficients fixed, scaling of the tensors computed
//   compression    worker phase of the momentum, exchange, server phase, gather, onebit_lamb_step
//
// Device memory of a rank, N elements, n ranks: p, m, v and fresh v 16 N, owed errors 4 N + 4 N/n,
// signs N/4 + N/8n bytes. A step enqueues on the streams of the ranks and returns.
//
// The gradients are those the optimizer shall see: check them for overflow, unscale and clip them
// before (cuda/gradient.h, nccl/shared_norm.h). One rank alone compresses too; DeepSpeed's does
// not.
//
// Tensors may belong to groups with a learning rate and weight decay of their own, momenta may be
// masked, and the last tensors may never freeze: their gradients are all-reduced in both stages.
//
// Source: DeepSpeed 0.15.4, runtime/fp16/onebit/lamb.py; 1-bit LAMB, arXiv:2104.06069.
#pragma once

#include <span>
#include <vector>

#include "kernels/cuda/lamb_tensors.h"
#include "kernels/nccl/compressed_allreduce.h"

namespace lambcast::cuda {

// How tensors differ from each other.
struct TensorTraits {
  std::vector<ParameterGroup> group_of;  // of every tensor; empty: the options hold for all
  std::vector<float> mask;               // of the momenta that are compressed; empty: all ones
  std::size_t never_freezing = 0;        // so many tensors at the end
};

class OnebitLamb {
 public:
  // Allocates on the current device. Of `quirks`, padding, persistent_tail and coefficient_average
  // apply, padding that persists only where all tensors freeze. Throws Error for freeze_step < 1
  // and for weights or traits that do not fit the tensors.
  OnebitLamb(const TensorLayout& tensors, std::span<const float> initial, int ranks, int rank,
             const OnebitLambOptions& options, const Quirks& quirks = {},
             const TensorTraits& traits = {});

  float* weights() const { return p_.data(); }
  int steps() const { return steps_; }
  bool compresses() const { return steps_ >= options_.freeze_step; }  // the next step
  // What decides when compression may begin (reference/freeze.h): sum |v| of every tensor that will
  // compress, doubles in device memory, the same bits on all ranks. 4 bytes per element.
  cudaError_t variance_norms(double* norms, cudaStream_t stream) const {
    return cuda::variance_norms(state(per_tensor_), norms, stream);
  }
  // Ends the warm-up after the steps taken so far, whatever freeze_step said. Alike on all ranks;
  // cudaErrorInvalidValue before the first step.
  cudaError_t begin_compression(cudaStream_t stream);
  // From the next step on. Alike on all ranks.
  void set_lr(double lr) { options_.lamb.lr = lr; }

  // The pieces of a step, which onebit_lamb_step() below puts around the communication.
  std::size_t elements() const { return p_.size(); }
  // From here on gradients are averaged in the compression stage too.
  std::size_t compressed_elements() const { return compressing_.elements(); }
  cudaError_t warm_up(const float* mean_gradient, cudaStream_t stream);
  cudaError_t compress(const float* gradient, cudaStream_t stream);
  CompressedAllreduce* exchange() { return &exchange_; }
  // Of `gradient` only what never freezes is read: its mean over the ranks.
  cudaError_t apply(const float* gradient, cudaStream_t stream);

 private:
  cudaError_t freeze(cudaStream_t stream);
  LambState state(const LambTensors& of) const { return of.state(p_.data(), m_.data(), v_.data()); }

  TensorLayout compressing_;  // the tensors in front of those that never freeze
  OnebitLambOptions options_;
  Quirks quirks_;
  int steps_ = 0;
  CompressedAllreduce exchange_;
  DeviceBuffer<float> p_, m_, v_, fresh_v_;  // m with its padding
  DeviceBuffer<float> mask_, scaling_, last_factor_;
  DeviceBuffer<std::size_t> offsets_;
  LambTensors per_tensor_, never_freezing_;
};

// What one rank brings to a step.
struct OnebitLambRank {
  int device = 0;
  OnebitLamb* optimizer = nullptr;
  float* gradient = nullptr;  // device memory; the mean over the ranks afterwards, in warm-up
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
};

// One step of all the ranks that this thread drives; every thread or process takes it for its own
// ranks. Throws Error{Exit::failure} naming the call that failed.
void onebit_lamb_step(const NcclApi& nccl, std::span<const OnebitLambRank> ranks);

}  // namespace lambcast::cuda
