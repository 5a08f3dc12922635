// All of 1-bit Adam over real GPUs: the state of one rank, and a step of all ranks that a thread
// drives. The algorithm is that of emulated_world/onebit_adam.h.
//
//   warm-up        all-reduce of the gradient (mean), adam_step
//   compression    worker phase of the momentum, exchange, server phase and gather for every
//                  tensor, all in the same two NCCL groups; onebit_adam_step
//
// Each compressed tensor is sent separately, with its own scales. Pass the tensors as they are
// sent; DeepSpeed's fp16 wrapper flattens each parameter group into one. They must begin at
// multiples of four elements. A single rank compresses too; DeepSpeed's does not.
//
// Device memory of a rank, N elements, n ranks: p, m and v 12 N, error feedback 4 N + 4 N/n, signs
// N/4 + N/8n bytes. A step enqueues on the streams of the ranks, and waits for them only to check
// for overflow.
//
// Source: DeepSpeed 0.15.4, runtime/fp16/onebit/adam.py; 1-bit Adam, arXiv:2102.02888.
#pragma once

#include <span>
#include <vector>

#include "kernels/cuda/adam.h"
#include "kernels/cuda/lamb_tensors.h"
#include "kernels/nccl/replica.h"
#include "kernels/nccl/step.h"
#include "kernels/nccl/tensor_exchanges.h"
#include "kernels/nccl/tensor_traits.h"

namespace lambcast::cuda {

class OnebitAdam : public Replica {
 public:
  // Allocates on the current device. Uses only these quirks: `padding`, `unseen`. Throws Error for
  // freeze_step < 1, for weights or traits that do not fit the tensors, and for tensors that do not
  // begin at multiples of four elements.
  OnebitAdam(const TensorLayout& tensors, std::span<const float> initial, int ranks, int rank,
             const OnebitAdamOptions& options, const Quirks& quirks = {},
             const TensorTraits& traits = {});

  bool compresses() const {
    return steps_ >= options_.freeze_step;
  }  // whether the next step compresses
  Step next() const { return compresses() ? Step::onebit : Step::full; }
  // See OnebitLamb (onebit_lamb.h).
  cudaError_t variance_norms(double* norms, cudaStream_t stream) const;
  cudaError_t begin_compression(cudaStream_t stream);
  cudaError_t count_replayed_step(cudaStream_t stream);
  std::vector<std::byte> save() const;
  void load(std::span<const std::byte> state);

  // The parts of a step (step.h).
  std::size_t compressed_elements() const { return compressing_.elements(); }
  cudaError_t full_step(const Gradient& mean_gradient, cudaStream_t stream);
  cudaError_t compress(const Gradient& gradient, cudaStream_t stream);
  std::span<CompressedAllreduce> exchanges() { return exchanges_.all(); }
  cudaError_t apply(const float* gradient, cudaStream_t stream);

  template <typename Self, typename Visit>
  static void each_state(Self& self, Visit& visit) {
    visit(self.steps_);
    visit(self.options_.freeze_step);
    visit(self.lr_.host);
    for (auto* const buffer : {&self.p_, &self.m_, &self.v_}) visit(*buffer);
    visit(self.lr_.device);
    TensorExchanges::each_state(self.exchanges_, visit);
  }

 private:
  AdamState state(std::size_t first, const DeviceBuffer<GroupRun>& runs,
                  std::size_t elements) const;
  StateLayout layout() const;

  TensorLayout compressing_;  // the tensors before those that never freeze
  OnebitAdamOptions options_;
  TensorExchanges exchanges_;
  DeviceBuffer<float> m_, v_, mask_;
  DeviceBuffer<GroupRun> runs_, runs_behind_;
  LambTensors per_tensor_;  // for the norms
};

using OnebitAdamRank = Rank<OnebitAdam>;

// Makes one step. Throws Error{Exit::failure} naming the call or the rank that failed.
Step onebit_adam_step(const NcclApi& nccl, std::span<const OnebitAdamRank> ranks,
                      const GradientOptions& options = {});

}  // namespace lambcast::cuda
