// The state of a rank that all optimizers of this folder share: the fp32 weights, their copy in 16
// bits, the learning rate, and the number of steps.
#pragma once

#include <span>

#include "kernels/cuda/half_precision.h"
#include "kernels/nccl/gradients.h"
#include "kernels/nccl/learning_rate.h"
#include "kernels/nccl/saved_state.h"
#include "kernels/options.h"

namespace lambcast::cuda {

class Replica {
 public:
  float* weights() const { return p_.data(); }
  std::size_t elements() const { return p_.size(); }
  int rank() const { return rank_; }
  int steps() const { return steps_; }

  // Sets the learning rate from the next step on, also for steps that a CUDA graph replays: kernels
  // read it from device memory. It must be equal on all ranks.
  cudaError_t set_lr(double lr, cudaStream_t stream) { return lr_.set(lr, stream); }
  // Sets the copy of the weights in fp16 or bf16 that the next forward pass reads. It is written
  // now, and by each step together with the fp32 weights (2 bytes per element). Call it again after
  // load().
  cudaError_t keep_copy(HalfPointer copy, cudaStream_t stream);

  const GradientNorm& norm() const { return norm_; }  // norm in the current step (step.h)

 protected:
  // Allocates on the current device.
  Replica(const TensorLayout& tensors, std::span<const float> initial, int ranks, int rank,
          const Quirks& quirks, double lr);
  StateLayout layout(std::string_view optimizer) const;

  TensorLayout tensors_;
  int ranks_, rank_, steps_ = 0;
  Quirks quirks_;
  LearningRate lr_;
  DeviceBuffer<float> p_;
  HalfPointer copy_;
  GradientNorm norm_;
};

}  // namespace lambcast::cuda
