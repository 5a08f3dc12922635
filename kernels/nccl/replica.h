// What a rank keeps of a model, whichever optimizer of this folder moves it: the weights in fp32,
// where their copy in 16 bits goes, the learning rate, and how many steps there were.
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

  // From the next step on, also of one that a CUDA graph replays: kernels read it from device
  // memory. Alike on all ranks.
  cudaError_t set_lr(double lr, cudaStream_t stream) { return lr_.set(lr, stream); }
  // Where the next forward pass reads the weights in fp16 or bf16: written now, and by every step
  // as it moves the masters (2 bytes per element). After load() it is to be called again.
  cudaError_t keep_copy(HalfPointer copy, cudaStream_t stream);

  const GradientNorm& norm() const { return norm_; }  // of a step (step.h)

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
