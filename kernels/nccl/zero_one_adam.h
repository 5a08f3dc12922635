// All of 0/1 Adam over real GPUs: the state of one rank, and a step of all ranks that a thread
// drives. The algorithm is that of emulated_world/zero_one_adam.h; kernels/zero_one_policy.h has
// the policy that selects the kind of a step.
//
//   full       all-reduce of the gradient (mean), adam_step
//   one bit    before the freeze: the gradient compressed and exchanged, zero_one_onebit_step
//              after it: zero_one_sync_begin, u compressed and exchanged, zero_one_sync_end
//   silent     zero_one_local_step
//
// Tensors are sent as in 1-bit Adam (onebit_adam.h) and must begin at multiples of four elements.
// All of them freeze. A single rank compresses too; DeepSpeed's does not.
//
// Device memory of a rank, N elements, n ranks: p, m, v and u 16 N, error feedback 4 N + 4 N/n,
// signs N/4 + N/8n bytes. A step enqueues on the streams of the ranks, and waits for them only to
// check for overflow.
//
// Source: DeepSpeed 0.15.4, runtime/fp16/onebit/zoadam.py; 0/1 Adam, arXiv:2202.06009.
#pragma once

#include <span>
#include <vector>

#include "kernels/cuda/adam.h"
#include "kernels/nccl/replica.h"
#include "kernels/nccl/step.h"
#include "kernels/nccl/tensor_exchanges.h"
#include "kernels/nccl/tensor_traits.h"
#include "kernels/zero_one_policy.h"

namespace lambcast::cuda {

class ZeroOneAdam : public Replica {
 public:
  // Allocates on the current device. Uses only these quirks: `padding`, `unseen`. Throws Error for
  // var_freeze_step < 1 or local_step_clipper < 1, for weights or traits that do not fit the
  // tensors, and for tensors that never freeze or do not begin at multiples of four elements.
  ZeroOneAdam(const TensorLayout& tensors, std::span<const float> initial, int ranks, int rank,
              const ZeroOneAdamOptions& options, const Quirks& quirks = {},
              const TensorTraits& traits = {});

  bool variance_is_frozen() const { return policy_.frozen; }
  Step next() const;
  // See OnebitLamb (onebit_lamb.h).
  cudaError_t count_replayed_step(cudaStream_t stream) { return finish(next(), stream); }
  std::vector<std::byte> save() const;
  void load(std::span<const std::byte> state);

  // The parts of a step (step.h).
  std::size_t compressed_elements() const { return p_.size(); }
  cudaError_t full_step(const Gradient& mean_gradient, cudaStream_t stream);
  cudaError_t compress(const Gradient& gradient, cudaStream_t stream);
  std::span<CompressedAllreduce> exchanges() { return exchanges_.all(); }
  cudaError_t apply(const float* gradient, cudaStream_t stream);
  cudaError_t local_step(const Gradient& gradient, cudaStream_t stream);

  template <typename Self, typename Visit>
  static void each_state(Self& self, Visit& visit) {
    visit(self.steps_);
    visit(self.policy_.var_interval);
    visit(self.policy_.var_counter);
    visit(self.policy_.local_interval);
    visit(self.policy_.local_counter);
    visit(self.policy_.frozen);
    visit(self.lr_.host);
    visit(self.lrs_);
    for (auto* const buffer : {&self.p_, &self.m_, &self.v_, &self.u_}) visit(*buffer);
    visit(self.lr_.device);
    visit(self.lrs_on_device_);
    TensorExchanges::each_state(self.exchanges_, visit);
  }

 private:
  // Returns the state for a kernel; `copy` is null if the weights change again before the step
  // ends.
  AdamState state(HalfPointer copy) const;
  cudaError_t finish(Step kind, cudaStream_t stream);

  ZeroOneAdamOptions options_;
  ZeroOnePolicy policy_;
  double lrs_ = 0;  // sum of the learning rates since the last synchronisation
  DeviceBuffer<double> lrs_on_device_{1};
  TensorExchanges exchanges_;
  DeviceBuffer<float> m_, v_, u_, mask_;
  DeviceBuffer<GroupRun> runs_;
};

using ZeroOneAdamRank = Rank<ZeroOneAdam>;

// Makes one step. Throws Error{Exit::failure} naming the call or the rank that failed.
Step zero_one_adam_step(const NcclApi& nccl, std::span<const ZeroOneAdamRank> ranks,
                        const GradientOptions& options = {});

}  // namespace lambcast::cuda
