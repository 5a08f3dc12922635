// Whole steps of the optimizers that this library ships (kernels/nccl): the exchange over all ranks
// and the update of the weights, but without a forward or backward pass.
//
//   fp16 gradients   adam, onebit_adam, zero_one_adam, lamb and onebit_lamb, each with an fp16
//                    copy of the weights
//   fp32 gradients   adam after an all-reduce, after int4+ef, and after powersgd:4 (kernels/cuda)
//
// The 1-bit optimizers are timed in their compression stage, and 0/1 Adam without silent steps. In
// int4, 2,048 elements share a scale. Tensors of LAMB and matrices of PowerSGD have 2^20 weights
// (fewer in small models), since only the total number of weights is an input.
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
  // Allocates on the GPUs, whose buffers have step_buffer_bytes(). Returns a function that
  // enqueues a step; its first call is the step before the compression stage.
  std::function<void()> (*make)(const Gpus& gpus, std::size_t weights);
};

// Returns all steps. A baseline comes before the steps that are compared with it.
std::span<const ShippedStep> shipped_steps();

// Return steps of Adam after a compressed exchange of the gradients in `send`, which then holds
// their mean. first_q() returns the elements of PowerSGD's first factors.
std::function<void()> int4_adam_step(const Gpus& gpus, std::size_t weights);
std::function<void()> power_sgd_adam_step(const Gpus& gpus, std::size_t weights);
float first_q(std::size_t element);

// Returns the size of each of the two buffers of a Gpu, in bytes.
std::uint64_t step_buffer_bytes(std::uint64_t weights, int ranks);

// Returns bytes on a GPU that are enough for any of the steps, the two buffers of the Gpu included.
std::uint64_t step_memory_bytes(std::uint64_t weights);

}  // namespace lambcast::validate
