// Whole steps of the optimizers that this library ships (kernels/nccl): the exchange over all ranks
// and the update of the weights, with gradients and a copy of the weights in fp16, but without a
// forward or backward pass. The 1-bit optimizers are timed in their compression stage, and 0/1 Adam
// without silent steps. Tensors of LAMB have 2^20 weights, since only the number of all weights is
// known here.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "validate/measure/gpu.h"

namespace lambcast::validate {

struct ShippedStep {
  const char* optimizer;
  const char* exchange;  // as for --exchange of the forecasts, or "one_bit"
  const char* gradient;  // type of the gradients
  // Allocates on the GPUs, whose buffers hold `weights` numbers in fp16. Returns a function that
  // enqueues a step; its first call is the step before the compression stage.
  std::function<void()> (*make)(const Gpus& gpus, std::size_t weights);
};

// Returns all steps. A plain one comes before those that it is compared with.
std::span<const ShippedStep> shipped_steps();

// Returns bytes on a GPU that are enough for any of the steps, the two buffers of the Gpu included.
std::uint64_t step_memory_bytes(std::uint64_t weights);

}  // namespace lambcast::validate
