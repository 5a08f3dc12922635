// For tests: an optimizer of nccl/ on n ranks of this machine.
#pragma once

#include <algorithm>

#include "kernels/emulated_world/world.h"
#include "kernels/nccl/ranks_test.h"
#include "kernels/nccl/step.h"
#include "kernels/nccl/tensor_traits.h"

namespace lambcast::cuda {

// Returns a world with tensors that all begin at multiples of four elements.
inline emulated::World aligned_world(int ranks) {
  emulated::World world;
  world.tensors = tensor_layout(std::vector<std::size_t>{700, 4, 0, 2048, 33});
  world.ranks = ranks;
  world.initial = random_values(world.tensors.elements(), 1);
  return world;
}

inline std::vector<std::vector<float>> random_gradients(const emulated::World& of, unsigned step) {
  std::vector<std::vector<float>> gradients;
  for (int r = 0; r < of.ranks; ++r) {
    gradients.push_back(random_values(of.tensors.elements(), 10 * step + unsigned(r) + 2, 0.05));
  }
  return gradients;
}
// Returns gradients that never reach elements 16 to 80, and reach 1000 to 1050 only from step
// `late` on.
inline std::vector<std::vector<float>> sparse_gradients(const emulated::World& of, unsigned step,
                                                        unsigned late) {
  auto gradients = random_gradients(of, step);
  for (auto& g : gradients) {
    std::fill(g.begin() + 16, g.begin() + 80, 0.0f);
    if (step < late) std::fill(g.begin() + 1000, g.begin() + 1050, 0.0f);
  }
  return gradients;
}

template <typename Optimizer>
struct Node {
  TestRanks gpus;
  std::vector<Optimizer> optimizers;

  template <typename Options>
  Node(const emulated::World& of, const Options& options) : gpus(of.ranks) {
    const auto never = std::count(of.non_freeze.begin(), of.non_freeze.end(), true);
    gpus.on_each([&](int r) {
      optimizers.emplace_back(of.tensors, of.initial, of.ranks, r, options, of.quirks,
                              TensorTraits{of.group_of, of.mask, std::size_t(never)});
    });
  }

  Step step(const std::vector<std::vector<float>>& gradients, const GradientOptions& how = {}) {
    std::vector<DeviceBuffer<float>> on_device;
    std::vector<Rank<Optimizer>> ranks;
    gpus.on_each([&](int r) {
      on_device.push_back(upload(gradients[std::size_t(r)]));
      ranks.push_back(rank(r, on_device.back().data()));
    });
    return take(ranks, how);
  }
  // Makes a step with gradients in 16 bits. Without fp32 `memory`, no kernel can widen them.
  Step step_half(const std::vector<std::vector<std::uint16_t>>& gradients,
                 const GradientOptions& how, HalfFormat format = HalfFormat::fp16,
                 bool memory = false) {
    std::vector<DeviceBuffer<std::uint16_t>> half;
    std::vector<DeviceBuffer<float>> full;
    std::vector<Rank<Optimizer>> ranks;
    gpus.on_each([&](int r) {
      half.push_back(upload(gradients[std::size_t(r)]));
      full.emplace_back(memory ? half.back().size() : 0);
      ranks.push_back(rank(r, full.back().data()));
      ranks.back().half_gradient = {half.back().data(), format};
    });
    return take(ranks, how);
  }

  Rank<Optimizer> rank(int r, float* gradient) {
    return {gpus.device(r), &optimizers[std::size_t(r)], gradient, gpus.comm_of(r), gpus.stream(r)};
  }
  Step take(const std::vector<Rank<Optimizer>>& ranks, GradientOptions how) {
    how.timeout_s = 60;
    std::vector<Step> did(ranks.size());
    gpus.drive([&](const NcclApi& nccl, int first, int count) {
      const auto own = std::span(ranks).subspan(std::size_t(first), std::size_t(count));
      did[std::size_t(first)] = step_of(nccl, own, how);
      await(nccl, watched(own), how.timeout_s);
    });
    return did[0];
  }

  void set_lr(double lr) {
    gpus.on_each([&](int r) { require(optimizers[std::size_t(r)].set_lr(lr, nullptr), "set_lr"); });
  }
  std::vector<float> weights(int rank) const {
    const Optimizer& optimizer = optimizers[std::size_t(rank)];
    std::vector<float> host(optimizer.elements());
    require(cudaMemcpy(host.data(), optimizer.weights(), host.size() * sizeof(float),
                       cudaMemcpyDeviceToHost),
            "cudaMemcpy");
    return host;
  }
};

}  // namespace lambcast::cuda
