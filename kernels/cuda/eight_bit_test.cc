#include "kernels/cuda/eight_bit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "kernels/cuda/galore.h"
#include "kernels/cuda/gpu_test.h"

using namespace lambcast;
using namespace lambcast::cuda;

namespace {

constexpr auto format = HalfFormat::bf16;

// A tensor in the reference, and its memory on the device.
struct Galored {
  Galored(const reference::Galore& rule, reference::MatrixShape of, unsigned which)
      : shape(of),
        part(reference::whole_part(of)),
        rank(rule.projects(part) ? rule.options.rank : 0),
        seed(100 * which),
        state(rule.state(part)),
        p(random_values(of.elements(), seed)),
        device_p(upload(p)),
        half(of.elements()),
        g(of.elements()),
        low(state.low.size()),
        basis(std::min(of.rows, of.columns) * static_cast<std::size_t>(rank)),
        m8(upload(state.m8.codes)),
        v8(upload(state.v8.codes)),
        m_largest(state.m8.largest.size()),
        v_largest(state.v8.largest.size()),
        m(state.m.size()),
        v(state.v.size()) {}

  // Runs all rounds of the reference and returns the clipping factor. R before clipping is in
  // `unclipped`.
  double step(const reference::Galore& rule, int k) {
    gradient = random_values(shape.elements(), seed + static_cast<unsigned>(k));
    reference::View x{part, p, gradient};
    double clipped = 1;
    for (int round = 0; round < rule.rounds(k); ++round) {
      const auto sums = rule.sums(round, x, state, k);
      if (round == rule.rounds(k) - 1) {
        auto clipping = state.clipping;
        clipped = reference::clip(clipping, std::sqrt(sums[0]), k);
        unclipped = state.low;
      }
      rule.take(round, x, state, sums, k);
    }
    rule.apply(x, state, k);
    return clipped;
  }

  GaloreTensor weights() const {
    return {.shape = shape,
            .rank = rank,
            .g = g.data(),
            .basis = basis.data(),
            .low = low.data(),
            .p = device_p.data(),
            .half_p = {half.data(), format}};
  }
  EightBitMoments moments() const {
    return {.m8 = m8.data(),
            .v8 = v8.data(),
            .m_largest = m_largest.data(),
            .v_largest = v_largest.data(),
            .m = m.data(),
            .v = v.data(),
            .low = low.data(),
            .elements = low.size()};
  }

  void check_moments() const {
    CHECK((low.to_host() == state.low));
    CHECK((m8.to_host() == state.m8.codes));
    CHECK((v8.to_host() == state.v8.codes));
    CHECK((m_largest.to_host() == state.m8.largest));
    CHECK((v_largest.to_host() == state.v8.largest));
    CHECK((m.to_host() == state.m));
    CHECK((v.to_host() == state.v));
  }
  void check_weights() const {
    CHECK((device_p.to_host() == p));
    const auto copy = half.to_host();
    std::size_t other = 0;
    for (std::size_t e = 0; e < p.size(); ++e) {
      other += copy[e] != reference::to_half(p[e], format);
    }
    CHECK(other == 0);
  }

  reference::MatrixShape shape;
  reference::Part part;
  int rank;
  unsigned seed;
  reference::Galore::State state;
  std::vector<float> p, gradient, unclipped;
  DeviceBuffer<float> device_p;
  DeviceBuffer<std::uint16_t> half;
  DeviceBuffer<float> g, low, basis;
  DeviceBuffer<std::uint8_t> m8, v8;
  DeviceBuffer<float> m_largest, v_largest, m, v;
};

// Returns the kernels launched since the last call, on the emulated device.
int launches() {
#ifdef LAMBCAST_CUDA_ON_CPU
  static int kernels = 0;
  cuda_on_cpu::on_kernel_end = [] { ++kernels; };
  return std::exchange(kernels, 0);
#else
  return 1;
#endif
}

// Checks three launches for all tensors per step against the reference: Adam's part and the weights
// bit for bit.
void steps_as_the_reference(const reference::Galore& rule,
                            std::span<const reference::MatrixShape> shapes, int steps) {
  std::vector<Galored> tensors;
  for (const reference::MatrixShape& shape : shapes) {
    tensors.emplace_back(rule, shape, static_cast<unsigned>(tensors.size()));
  }
  std::vector<GaloreTensor> weights;
  std::vector<EightBitMoments> moments;
  for (const Galored& t : tensors) {
    weights.push_back(t.weights());
    moments.push_back(t.moments());
  }
  const GaloreTensors projections(weights);
  const EightBitTensors adam(moments);
  for (int k = 1; k <= steps; ++k) {
    std::vector<float> clipped;
    for (Galored& t : tensors) {
      clipped.push_back(static_cast<float>(t.step(rule, k)));
      t.g.assign(t.gradient);
      if (t.rank > 0) t.basis.assign(t.state.basis);
    }
    launches();
    require(galore_project(projections.batch(), nullptr), "galore_project");
    CHECK(launches() == 1);
    for (Galored& t : tensors) {
      INFO(t.shape.rows << " x " << t.shape.columns);
      if (t.rank > 0) CHECK(relative_distance(t.low.to_host(), t.unclipped) < 1e-6);
      if (t.rank > 0) CHECK((t.g.to_host() == t.gradient));
      // Gives both sides the same bits of R before Adam's part.
      t.low.assign(t.unclipped);
    }
    const auto factors = upload(clipped);
    launches();
    require(eight_bit_adam(adam.batch(), rule.options, factors.data(), k, nullptr),
            "eight_bit_adam");
    CHECK(launches() == 1);
    require(galore_apply(projections.batch(), rule.options, nullptr), "galore_apply");
    CHECK(launches() == 1);
    for (const Galored& t : tensors) {
      INFO(t.shape.rows << " x " << t.shape.columns);
      t.check_moments();
      t.check_weights();
    }
  }
}

}  // namespace

TEST_CASE(
    "GaLore on the GPU, all tensors in three launches: as the reference, Adam's part bit for bit") {
  NEED_GPUS(1);
  // Tall and wide matrices with rank 12, in 8 bits (1560 values of R are no multiple of the block)
  // and in 32 bits; matrices without projection and vectors, both in 8 and in 32 bits; tensors of
  // several pieces and of one; an empty tensor.
  const reference::MatrixShape shapes[] = {{130, 70}, {1, 37},   {70, 130}, {13, 20}, {20, 13},
                                           {0, 7},    {200, 12}, {30, 10},  {1, 9000}};
  steps_as_the_reference({{.lr = 0.01,
                           .weight_decay = 0.1,
                           .rank = 12,
                           .gap = 3,
                           .min_8bit_size = 600,
                           .percentile_clipping = 50}},
                         shapes, 4);
}

TEST_CASE("GaLore on the GPU: products of several tiles in each direction, whole and partial") {
  NEED_GPUS(1);
  const reference::MatrixShape shapes[] = {{256, 128}, {128, 256}, {260, 132},
                                           {132, 260}, {131, 129}, {129, 131}};
  for (const int rank : {64, 68, 67}) steps_as_the_reference({{.rank = rank}}, shapes, 1);
}

TEST_CASE(
    "GaLore on the GPU: an empty list of tensors is valid, and without factors nothing is "
    "clipped") {
  NEED_GPUS(1);
  launches();
  const GaloreTensors none({});
  require(galore_project(none.batch(), nullptr), "galore_project");
  require(galore_apply(none.batch(), {}, nullptr), "galore_apply");
  require(eight_bit_adam(EightBitTensors({}).batch(), {}, nullptr, 1, nullptr), "eight_bit_adam");
  CHECK((!emulated_device || launches() == 0));

  const reference::Galore rule{{.rank = 4, .percentile_clipping = 100}};
  Galored t(rule, {40, 30}, 1);
  REQUIRE(t.step(rule, 1) == 1);
  t.low.assign(t.unclipped);
  t.basis.assign(t.state.basis);
  require(eight_bit_adam(EightBitTensors(std::array{t.moments()}).batch(), rule.options, nullptr, 1,
                         nullptr),
          "eight_bit_adam");
  t.check_moments();
}

TEST_CASE(
    "codes of 8 bits equal the reference's at every value of a map, at midpoints, and near them") {
  NEED_GPUS(1);
  // With b1 = b2 = 0, m is g and v is g^2; a 1 in every block makes the scale 1.
  std::vector<float> values;
  for (const auto sign : {reference::Sign::both, reference::Sign::positive}) {
    const auto& map = reference::dynamic_map(sign);
    for (std::size_t i = 0; i < map.size(); ++i) {
      const float halfway = (map[i] + map[std::min<std::size_t>(i + 1, 255)]) / 2;
      for (const float middle : {map[i], halfway, std::sqrt(std::fabs(map[i]))}) {
        for (const float x : {std::nextafter(middle, -1.0f), middle, std::nextafter(middle, 1.0f)})
          values.push_back(x);
      }
    }
  }
  for (const float x : {0.0f, -0.0f, 1e-45f, -1e-45f, 1e-38f, -1e-38f, -1.0f}) values.push_back(x);
  for (const float x : random_values(20000, 1, 0.2))
    values.insert(values.end(), {std::clamp(x, -1.0f, 1.0f), std::clamp(x * x * x, -1.0f, 1.0f)});
  std::vector<float> g;
  for (const float x : values) {
    if (g.size() % eight_bit_block == 0) g.push_back(1);
    g.push_back(x);
  }
  std::vector<float> squares;
  for (const float x : g) squares.push_back(x * x);
  reference::EightBitState m, v;
  reference::store(g, m, reference::Sign::both);
  reference::store(squares, v, reference::Sign::positive);
  for (const std::size_t shift : {0, 1}) {  // aligned and unaligned
    std::vector<float> shifted(shift);
    shifted.insert(shifted.end(), g.begin(), g.end());
    const DeviceBuffer<float> low = upload(shifted), m_largest(m.largest.size()),
                              v_largest(v.largest.size());
    const DeviceBuffer<std::uint8_t> m8(g.size()), v8(g.size());
    const EightBitMoments moments{.m8 = m8.data(),
                                  .v8 = v8.data(),
                                  .m_largest = m_largest.data(),
                                  .v_largest = v_largest.data(),
                                  .low = low.data() + shift,
                                  .elements = g.size()};
    reference::GaloreOptions options;
    options.beta1 = options.beta2 = 0;
    const EightBitTensors adam(std::array{moments});
    require(eight_bit_adam(adam.batch(), options, nullptr, 1, nullptr), "eight_bit_adam");
    CHECK((m8.to_host() == m.codes));
    CHECK((v8.to_host() == v.codes));
  }
}
