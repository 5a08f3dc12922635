// All of 1-bit LAMB on the kernels, with ranks one after another on one device, compared with the
// emulated world.
#include "kernels/emulated_world/onebit_lamb.h"

#include "kernels/cuda/lamb_tensors.h"
#include "kernels/cuda/one_device_world.h"

using namespace lambcast;
using namespace lambcast::cuda;

namespace {

struct Rank {
  DeviceBuffer<float> p, m, v, fresh_v;
  DeviceBuffer<float> scaling, last_factor;
  LambTensors per_tensor;
};

struct Gpu {
  const emulated::OnebitLamb& twin;  // options and layout; its state is not read
  const TensorLayout& tensors = twin.world.tensors;
  const ChunkLayout& layout = twin.errors.layout;
  bool tail = twin.world.quirks.persistent_tail;
  DeviceBuffer<std::size_t> offsets = upload(tensors.offsets);
  OneDeviceWorld exchange{layout, twin.world.quirks.padding};
  std::vector<Rank> ranks;

  explicit Gpu(const emulated::OnebitLamb& o) : twin(o) {
    const std::size_t n = tensors.elements(), t = tensors.tensors();
    for (int r = 0; r < layout.ranks; ++r) {
      ranks.push_back({.p = upload(o.world.initial),
                       .m = DeviceBuffer<float>(layout.padded),
                       .v = DeviceBuffer<float>(n),
                       .fresh_v = DeviceBuffer<float>(n),
                       .scaling = DeviceBuffer<float>(t),
                       .last_factor = upload(std::vector<float>(t, 1.0f)),
                       .per_tensor = LambTensors(tensors)});
    }
  }

  LambState state(const Rank& rank) const {
    return rank.per_tensor.state(rank.p.data(), rank.m.data(), rank.v.data());
  }

  void warm_up(const std::vector<float>& mean_gradient) {
    const auto g = upload(mean_gradient);
    for (const Rank& rank : ranks) {
      require(lamb_step(state(rank), g.data(), twin.options.lamb,
                        {twin.options.coeff_beta, twin.world.quirks.coefficient_average}, nullptr),
              "lamb_step");
    }
  }

  void freeze() {
    for (Rank& rank : ranks) {
      rank.fresh_v = upload(rank.v.to_host());
      require(scaling_coefficients(state(rank), rank.scaling.data(), nullptr), "scaling");
    }
  }

  void step(const std::vector<std::vector<float>>& gradients) {
    std::vector<DeviceBuffer<float>> g;
    std::vector<WorkerPhase> inputs;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      g.push_back(upload(gradients[r]));
      WorkerPhase& input = inputs.emplace_back();
      input.x = ranks[r].m.data();
      input.gradient = g.back().data();
      input.beta1 = twin.options.lamb.beta1;
      input.scaling = ranks[r].scaling.data();
      input.tensor_offsets = offsets.data();
      input.tensors = int(tensors.tensors());
      input.x_elements = tail ? layout.padded : layout.elements;
    }
    const auto packed = exchange.average(inputs);
    for (const Rank& rank : ranks) {
      CompressedLambState x;
      x.fresh_v = rank.fresh_v.data();
      x.scaling = rank.scaling.data();
      x.last_factor = rank.last_factor.data();
      x.signs = packed.signs.data();
      x.scales = packed.scales.data();
      x.chunk = layout.chunk;
      x.elements = layout.elements;
      x.tail_end = tail ? layout.padded : 0;
      require(onebit_lamb_step(state(rank), x, twin.options, twin.world.quirks.coefficient_average,
                               nullptr),
              "onebit_lamb_step");
    }
  }
};

}  // namespace

TEST_CASE("all of 1-bit LAMB on the kernels agrees with the emulated world") {
  NEED_GPUS(1);
  Quirks theirs;
  theirs.padding = Padding::counted;
  theirs.persistent_tail = true;
  theirs.coefficient_average = CoefficientAverage::from_zero;
  for (const Quirks& quirks : {Quirks{}, theirs}) {
    const std::vector<std::size_t> sizes{700, 1, 0, 2049, 33};
    emulated::World world;
    world.tensors = tensor_layout(sizes);
    world.ranks = 3;
    world.initial = random_values(world.tensors.elements(), 1);
    world.quirks = quirks;
    OnebitLambOptions options;
    options.lamb.lr = 0.01;
    options.lamb.weight_decay = 0.01;
    options.freeze_step = 4;
    emulated::OnebitLamb cpu = emulated::onebit_lamb(world, options);
    Gpu gpu(cpu);
    for (unsigned k = 0; k < 4 + test_steps; ++k) {
      std::vector<std::vector<float>> g;
      for (unsigned r = 0; r < 3; ++r) {
        g.push_back(random_values(world.tensors.elements(), 10 * k + r + 2, 0.05));
      }
      if (cpu.frozen) {
        gpu.step(g);
      } else {
        gpu.warm_up(emulated::reduce(world, g, true)->front());
      }
      emulated::step(cpu, g);
      if (k == 3) gpu.freeze();
    }
    for (std::size_t r = 0; r < 3; ++r) {
      CHECK(relative_distance(gpu.ranks[r].p.to_host(), cpu.ranks[r].p) < 1e-5);
      CHECK(relative_distance(gpu.ranks[r].v.to_host(), cpu.ranks[r].v) < 1e-6);
      CHECK(relative_distance(gpu.ranks[r].fresh_v.to_host(), cpu.ranks[r].fresh_v) < 1e-5);
      std::vector<float> m = cpu.ranks[r].m;
      m.insert(m.end(), cpu.ranks[r].tail.begin(), cpu.ranks[r].tail.end());
      CHECK(relative_distance(gpu.ranks[r].m.to_host(), m) < 1e-5);
    }
  }
}
