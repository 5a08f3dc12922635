#include "validate/measure/nccl_steps.h"

#include <limits>

#include "kernels/nccl/onebit_adam.h"
#include "kernels/nccl/onebit_lamb.h"
#include "kernels/nccl/zero_one_adam.h"

namespace lambcast::validate {
namespace {

using cuda::require;

constexpr std::size_t weights_of_tensor = std::size_t{1} << 20;
constexpr int never = std::numeric_limits<int>::max();

cuda::HalfPointer in_fp16(char* data) {
  return {reinterpret_cast<std::uint16_t*>(data), cuda::HalfFormat::fp16};
}

// Returns a step of an optimizer of kernels/nccl. The gradients are in `send` of each Gpu. If
// `half`, they are in fp16, and `receive` gets the fp16 copy of the weights; else they are in fp32.
template <typename Optimizer, typename Options>
std::function<void()> step_of(const Gpus& gpus, const TensorLayout& tensors, const Options& options,
                              bool half = true) {
  struct State {
    std::vector<Optimizer> optimizers;
    std::vector<cuda::Rank<Optimizer>> ranks;
  };
  const auto state = std::make_shared<State>();
  const std::vector<float> initial(tensors.elements(), 0.01f);
  state->optimizers.reserve(gpus.size());  // `ranks` has pointers into it
  for (const auto& gpu : gpus) {
    require(cudaSetDevice(gpu->device), "cudaSetDevice");
    auto& optimizer =
        state->optimizers.emplace_back(tensors, initial, gpu->ranks, gpu->rank, options);
    // Gradients of 1.06 in fp16, or 0.011 in fp32.
    require(cudaMemset(gpu->send.data(), 0x3c, gpu->send.size()), "cudaMemset");
    cuda::Rank<Optimizer> rank{gpu->device, &optimizer, nullptr, &gpu->communicator, gpu->stream};
    if (half) {
      rank.half_gradient = in_fp16(gpu->send.data());
      require(optimizer.keep_copy(in_fp16(gpu->receive.data()), gpu->stream), "keep_copy");
    } else {
      rank.gradient = reinterpret_cast<float*>(gpu->send.data());
    }
    state->ranks.push_back(rank);
    require(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  return [state, &nccl = gpus.front()->nccl] {
    cuda::step_of<Optimizer>(nccl, state->ranks, {.check_overflow = false});
  };
}

TensorLayout one_tensor(std::size_t weights) {
  return tensor_layout(std::vector<std::size_t>{weights});
}

template <int freeze_step, bool half = true>
std::function<void()> make_adam(const Gpus& gpus, std::size_t weights) {
  return step_of<cuda::OnebitAdam>(gpus, one_tensor(weights),
                                   OnebitAdamOptions{.adam = {}, .freeze_step = freeze_step}, half);
}

template <int freeze_step>
std::function<void()> make_lamb(const Gpus& gpus, std::size_t weights) {
  std::vector<std::size_t> sizes(weights / weights_of_tensor, weights_of_tensor);
  if (weights % weights_of_tensor > 0) sizes.push_back(weights % weights_of_tensor);
  return step_of<cuda::OnebitLamb>(gpus, tensor_layout(sizes),
                                   OnebitLambOptions{.lamb = {}, .freeze_step = freeze_step});
}

// After the first step the variance is frozen, and the interval of local steps stays 1.
std::function<void()> make_zero_one_adam(const Gpus& gpus, std::size_t weights) {
  return step_of<cuda::ZeroOneAdam>(
      gpus, one_tensor(weights),
      ZeroOneAdamOptions{.adam = {}, .var_freeze_step = 1, .local_step_clipper = 1});
}

constexpr ShippedStep all_steps[] = {
    {"adam", "all_reduce", "fp16", make_adam<never>},
    {"onebit_adam", "one_bit", "fp16", make_adam<1>},
    {"zero_one_adam", "one_bit", "fp16", make_zero_one_adam},
    {"lamb", "all_reduce", "fp16", make_lamb<never>},
    {"onebit_lamb", "one_bit", "fp16", make_lamb<1>},
    {"adam", "all_reduce", "fp32", make_adam<never, false>},
    {"adam", "int4+ef", "fp32", int4_adam_step},
    {"adam", "powersgd:4", "fp32", power_sgd_adam_step},
};

}  // namespace

std::span<const ShippedStep> shipped_steps() { return all_steps; }

std::uint64_t step_memory_bytes(std::uint64_t weights) {
  // Bytes per weight: 8 for both buffers; 16 for p, m, v and fresh v or u; 8 for error feedback of
  // both sides; 4 for that of PowerSGD; 1 for messages.
  return 37 * weights;
}

}  // namespace lambcast::validate
