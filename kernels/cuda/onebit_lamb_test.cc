// The whole of 1-bit LAMB on the kernels, ranks one after the other on one device, against the
// emulated world.
#include "kernels/emulated_world/onebit_lamb.h"

#include "kernels/cuda/compression.h"
#include "kernels/cuda/gpu_test.h"
#include "kernels/cuda/lamb.h"

using namespace lambcast;
using namespace lambcast::cuda;

namespace {

struct Rank {
  DeviceBuffer<float> p, m, v, fresh_v, worker_c, server_c;
  DeviceBuffer<float> average, weight, ratio, step_length, scaling, last_factor;
  DeviceBuffer<float> worker_scale{1}, server_scale{1};
  DeviceBuffer<std::uint8_t> signs, served;
  DeviceBuffer<double> workspace;
};

struct Gpu {
  const emulated::OnebitLamb& twin;  // options and layout; its state is not read
  const TensorLayout& tensors = twin.world.tensors;
  const ChunkLayout& layout = twin.errors.layout;
  bool counted = twin.world.quirks.padding == Padding::counted;
  bool tail = twin.world.quirks.persistent_tail;
  PieceTable table = cut_into_pieces(tensors);
  DeviceBuffer<Piece> pieces = upload(table.pieces);
  DeviceBuffer<int> first_piece = upload(table.first_piece);
  DeviceBuffer<std::size_t> offsets = upload(tensors.offsets);
  std::vector<Rank> ranks;

  explicit Gpu(const emulated::OnebitLamb& o) : twin(o) {
    const std::size_t n = tensors.elements(), t = tensors.tensors();
    for (int r = 0; r < layout.ranks; ++r) {
      Rank rank;
      rank.p = upload(o.world.initial);
      for (auto* x : {&rank.v, &rank.fresh_v}) *x = DeviceBuffer<float>(n);
      for (auto* x : {&rank.m, &rank.worker_c}) *x = DeviceBuffer<float>(layout.padded);
      rank.server_c = DeviceBuffer<float>(layout.chunk);
      for (auto* x : {&rank.average, &rank.weight, &rank.ratio, &rank.step_length, &rank.scaling}) {
        *x = DeviceBuffer<float>(t);
      }
      rank.last_factor = upload(std::vector<float>(t, 1.0f));
      rank.signs = DeviceBuffer<std::uint8_t>(layout.packed_bytes());
      rank.served = DeviceBuffer<std::uint8_t>(layout.chunk_bytes());
      rank.workspace = DeviceBuffer<double>(std::max(reduction_slots, lamb_workspace(table)));
      ranks.push_back(std::move(rank));
    }
  }

  LambState state(const Rank& rank) const {
    LambState s;
    s.pieces = pieces.data();
    s.first_piece = first_piece.data();
    s.piece_count = int(table.pieces.size());
    s.tensors = int(tensors.tensors());
    s.p = rank.p.data();
    s.m = rank.m.data();
    s.v = rank.v.data();
    s.running_average = rank.average.data();
    s.running_weight = rank.weight.data();
    s.trust_ratio = rank.ratio.data();
    s.step_length = rank.step_length.data();
    s.workspace = rank.workspace.data();
    return s;
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

  // Worker phase on every rank; what each sends, and all scales.
  std::vector<std::vector<std::uint8_t>> compress(const std::vector<std::vector<float>>& gradients,
                                                  std::vector<float>& scales) {
    std::vector<std::vector<std::uint8_t>> sent;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const auto g = upload(gradients[r]);
      WorkerPhase phase;
      phase.x = ranks[r].m.data();
      phase.gradient = g.data();
      phase.beta1 = twin.options.lamb.beta1;
      phase.scaling = ranks[r].scaling.data();
      phase.tensor_offsets = offsets.data();
      phase.tensors = int(tensors.tensors());
      phase.elements = layout.elements;
      phase.x_elements = tail ? layout.padded : layout.elements;
      phase.padded = layout.padded;
      phase.counted = counted ? layout.padded : layout.elements;
      phase.error = {ranks[r].worker_c.data(), ranks[r].worker_scale.data()};
      phase.signs = ranks[r].signs.data();
      phase.workspace = ranks[r].workspace.data();
      require(worker_phase(phase, nullptr), "worker_phase");
      sent.push_back(ranks[r].signs.to_host());
      scales.push_back(ranks[r].worker_scale.to_host()[0]);
    }
    return sent;
  }

  void step(const std::vector<std::vector<float>>& gradients) {
    std::vector<float> worker_scales, server_scales;
    const auto sent = compress(gradients, worker_scales);
    const auto device_scales = upload(worker_scales);
    std::vector<std::uint8_t> gathered;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      std::vector<std::uint8_t> received;
      const auto begin = std::ptrdiff_t(r * layout.chunk_bytes());
      for (const auto& signs : sent) {
        received.insert(received.end(), signs.begin() + begin,
                        signs.begin() + begin + std::ptrdiff_t(layout.chunk_bytes()));
      }
      const auto device_received = upload(received);
      ServerPhase phase;
      phase.received = device_received.data();
      phase.worker_scales = device_scales.data();
      phase.ranks = layout.ranks;
      phase.chunk = layout.chunk;
      phase.counted = counted ? layout.chunk : layout.real_in_chunk(int(r));
      phase.error = {ranks[r].server_c.data(), ranks[r].server_scale.data()};
      phase.signs = ranks[r].served.data();
      phase.workspace = ranks[r].workspace.data();
      require(server_phase(phase, nullptr), "server_phase");
      const auto served = ranks[r].served.to_host();
      gathered.insert(gathered.end(), served.begin(), served.end());
      server_scales.push_back(ranks[r].server_scale.to_host()[0]);
    }
    const auto signs = upload(gathered);
    const auto scales = upload(server_scales);
    for (const Rank& rank : ranks) {
      CompressedLambState x;
      x.fresh_v = rank.fresh_v.data();
      x.scaling = rank.scaling.data();
      x.last_factor = rank.last_factor.data();
      x.signs = signs.data();
      x.scales = scales.data();
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

TEST_CASE("the whole of 1-bit LAMB on the kernels agrees with the emulated world") {
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
