// All of 1-bit Adam on the kernels, with ranks one after another on one device, compared with the
// emulated world. Every tensor is sent separately; one belongs to a group that never freezes.
#include "kernels/emulated_world/onebit_adam.h"

#include "kernels/cuda/adam.h"
#include "kernels/cuda/one_device_world.h"

using namespace lambcast;
using namespace lambcast::cuda;

namespace {

// One tensor on all ranks.
struct Tensor {
  struct Rank {
    DeviceBuffer<float> p, m, v;
  };
  OneDeviceWorld exchange;
  DeviceBuffer<float> mask;
  std::vector<Rank> ranks;

  Tensor(const ChunkLayout& layout, Padding padding, const std::vector<float>& initial,
         const std::vector<float>& host_mask)
      : exchange(layout, padding), mask(upload(host_mask)) {
    for (int r = 0; r < layout.ranks; ++r) {
      ranks.push_back({upload(initial), DeviceBuffer<float>(layout.elements),
                       DeviceBuffer<float>(layout.elements)});
    }
  }

  AdamState state(const Rank& rank) const {
    return {rank.p.data(), rank.m.data(), rank.v.data(), nullptr, {}, exchange.layout.elements};
  }

  // Makes a full step: during warm-up, and in both stages if the tensor never freezes.
  void full_step(const std::vector<float>& mean_gradient, const AdamOptions& options) {
    const auto g = upload(mean_gradient);
    for (const Rank& rank : ranks) {
      require(adam_step(state(rank), g.data(), options, 1, nullptr), "adam_step");
    }
  }

  void compressed_step(const std::vector<std::vector<float>>& gradients,
                       const AdamOptions& options) {
    std::vector<DeviceBuffer<float>> g;
    std::vector<WorkerPhase> inputs;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      g.push_back(upload(gradients[r]));
      WorkerPhase& input = inputs.emplace_back();
      input.x = ranks[r].m.data();
      input.gradient = g.back().data();
      input.beta1 = options.beta1;
    }
    const auto packed = exchange.average(inputs);
    for (const Rank& rank : ranks) {
      const PackedRun all{0, packed.signs.data(), packed.scales.data(), exchange.layout.chunk};
      require(onebit_adam_step(state(rank), {.all = all, .mask = mask.data()}, options, nullptr),
              "onebit_adam_step");
    }
  }
};

std::vector<float> part(const std::vector<float>& flat, const TensorLayout& tensors,
                        std::size_t t) {
  const auto view = tensors.view(std::span(flat), t);
  return {view.begin(), view.end()};
}

}  // namespace

TEST_CASE("all of 1-bit Adam on the kernels agrees with the emulated world") {
  NEED_GPUS(1);
  for (const Padding padding : {Padding::excluded, Padding::counted}) {
    const std::vector<std::size_t> sizes{700, 65, 2049};
    emulated::World world;
    world.tensors = tensor_layout(sizes);
    world.ranks = 3;
    world.initial = random_values(world.tensors.elements(), 1);
    world.mask.assign(world.tensors.elements(), 1.0f);
    world.mask[5] = world.mask[2000] = 0;
    world.non_freeze = {false, true, false};
    world.quirks.padding = padding;
    OnebitAdamOptions options;
    options.adam.lr = 0.01;
    options.adam.weight_decay = 0.01;
    options.freeze_step = 4;
    emulated::OnebitAdam cpu = emulated::onebit_adam(world, options);
    std::vector<Tensor> gpu;
    for (std::size_t t = 0; t < sizes.size(); ++t) {
      gpu.emplace_back(chunk_layout(sizes[t], world.ranks), padding,
                       part(world.initial, world.tensors, t), part(world.mask, world.tensors, t));
    }
    for (unsigned k = 0; k < 4 + test_steps; ++k) {
      std::vector<std::vector<float>> g;
      for (unsigned r = 0; r < 3; ++r) {
        g.push_back(random_values(world.tensors.elements(), 10 * k + r + 2, 0.05));
      }
      const auto mean = emulated::mean(g);
      for (std::size_t t = 0; t < sizes.size(); ++t) {
        if (!cpu.frozen || world.non_freeze[t]) {
          gpu[t].full_step(part(mean, world.tensors, t), options.adam);
          continue;
        }
        std::vector<std::vector<float>> local;
        for (const auto& gradient : g) local.push_back(part(gradient, world.tensors, t));
        gpu[t].compressed_step(local, options.adam);
      }
      emulated::step(cpu, g);
    }
    for (std::size_t t = 0; t < sizes.size(); ++t) {
      for (std::size_t r = 0; r < 3; ++r) {
        const Tensor::Rank& rank = gpu[t].ranks[r];
        CHECK(rank.v.to_host() == part(cpu.ranks[r].v, world.tensors, t));
        CHECK(relative_distance(rank.m.to_host(), part(cpu.ranks[r].m, world.tensors, t)) < 1e-5);
        CHECK(relative_distance(rank.p.to_host(), part(cpu.ranks[r].p, world.tensors, t)) < 1e-5);
      }
    }
  }
}
