#include "kernels/cuda/gradient.h"

#include <cuda_fp16.h>

#include "kernels/cuda/gpu_test.h"
#include "kernels/emulated_world/world.h"
#include "kernels/reference/gradient.h"
#include "kernels/reference/half.h"

using namespace lambcast;
using namespace lambcast::cuda;

namespace {

void agrees_with_reference(std::size_t elements, HalfFormat format) {
  std::vector<std::uint16_t> half_g;
  for (const float x : random_values(elements, 1)) {
    half_g.push_back(reference::to_half(100 * x, format));
  }
  const auto device_half = upload(half_g);
  const HalfPointer raw(device_half.data(), format);
  DeviceBuffer<float> g(elements);
  DeviceBuffer<double> squared_norm(1);
  DeviceBuffer<double> workspace(reduction_slots);
  require(measure_gradient(raw, elements, squared_norm.data(), workspace.data(), nullptr),
          "measure");
  const float norm = reference::gradient_norm(half_g, format);
  CHECK(std::sqrt(squared_norm.to_host()[0]) == Approx(norm).epsilon(1e-6));

  const DeviceBuffer<float> factor(1);
  for (const double limit : {0.0, 1.0, 1e9}) {
    require(gradient_factor(squared_norm.data(), 1024, limit, factor.data(), nullptr), "factor");
    require(unscale({raw, factor.data()}, g.data(), elements, nullptr), "unscale");
    std::vector<float> expected(elements);
    reference::unscale(half_g, expected, reference::clip_factor(norm, 1024, limit), format);
    CHECK(relative_distance(g.to_host(), expected) < 1e-6);
  }
  require(measure_gradient(g.data(), elements, squared_norm.data(), workspace.data(), nullptr),
          "measure");
  CHECK(std::sqrt(squared_norm.to_host()[0]) == Approx(norm / 1024).epsilon(1e-6));
  const auto before = g.to_host();
  require(gradient_factor(squared_norm.data(), 2, 0, factor.data(), nullptr), "factor");
  require(unscale({g.data(), factor.data()}, g.data(), elements, nullptr), "unscale");
  CHECK(g.to_host()[elements - 1] == before[elements - 1] / 2);
}

}  // namespace

TEST_CASE("norm, overflow, unscale and clip agree with the reference") {
  NEED_GPUS(1);
  for (const std::size_t elements : {1, 1003, emulated_device ? 10001 : 1000001}) {
    agrees_with_reference(elements, HalfFormat::fp16);
    agrees_with_reference(elements, HalfFormat::bf16);
  }
}

TEST_CASE("norm, unscale and clip over many passes agree with the reference", "[large]") {
  NEED_GPUS(1);
  agrees_with_reference(many_passes, HalfFormat::fp16);
}

TEST_CASE("weights in 16 bits are rounded as in the reference, bit for bit, for any weight") {
  NEED_GPUS(1);
  auto weights = random_values(9003, 1);
  const std::vector<float> edges{0.0f,     -0.0f,       65519.996f, 65520.0f, 3.39e38f,
                                 -3.4e38f, INFINITY,    6e-8f,      3e-8f,    1e-40f,
                                 NAN,      1.00390625f, 1.01171875f};
  std::copy(edges.begin(), edges.end(), weights.begin() + 5);
  const auto from = upload(weights);
  for (const HalfFormat format : {HalfFormat::fp16, HalfFormat::bf16}) {
    const DeviceBuffer<std::uint16_t> to(weights.size());
    require(round_to({to.data(), format}, from.data(), weights.size(), nullptr), "round_to");
    const auto rounded = to.to_host();
    for (std::size_t e = 0; e < weights.size(); ++e) {
      REQUIRE(rounded[e] == reference::to_half(weights[e], format));
    }
    CHECK(round_to({to.data() + 1, format}, from.data(), 4, nullptr) == cudaErrorMisalignedAddress);
  }
}

TEST_CASE("an infinity or NaN anywhere is an overflow, in 16 bits too") {
  NEED_GPUS(1);
  for (const float bad : {INFINITY, -INFINITY, NAN}) {
    for (const std::size_t at : {std::size_t{0}, std::size_t{5000}, std::size_t{9998}}) {
      auto g = random_values(9999, 1);
      g[at] = bad;
      const auto device = upload(g);
      DeviceBuffer<double> squared_norm(1);
      DeviceBuffer<double> workspace(reduction_slots);
      require(
          measure_gradient(device.data(), g.size(), squared_norm.data(), workspace.data(), nullptr),
          "measure");
      CHECK_FALSE(std::isfinite(squared_norm.to_host()[0]));
      for (const HalfFormat format : {HalfFormat::fp16, HalfFormat::bf16}) {
        std::vector<std::uint16_t> half_g;
        for (const float x : g) half_g.push_back(reference::to_half(x, format));
        const auto bits = upload(half_g);
        require(measure_gradient(HalfPointer(bits.data(), format), g.size(), squared_norm.data(),
                                 workspace.data(), nullptr),
                "measure");
        CHECK_FALSE(std::isfinite(squared_norm.to_host()[0]));
        CHECK(reference::overflows(half_g, format));
      }
    }
  }
}

TEST_CASE("a squared norm is within 1.8e-7 of its exact value for elements of any magnitude") {
  NEED_GPUS(1);
  constexpr std::size_t elements = 20'011;
  DeviceBuffer<double> squared_norm(1);
  DeviceBuffer<double> workspace(reduction_slots);
  // Ordinary values, tiny and huge values whose squares exceed a float, and all of these mixed with
  // zeros.
  for (const float size : {1.0f, 1e-30f, 1e30f, 0.0f}) {
    auto g = random_values(elements, 7);
    double exact = 0;
    for (std::size_t e = 0; e < elements; ++e) {
      g[e] *= size > 0 ? size : e % 5 == 0 ? 1e-3f : e % 5 == 1 ? 1e12f : e % 5 == 2 ? 1e-25f : 0;
      exact += double(g[e]) * double(g[e]);
    }
    const auto device = upload(g);
    std::vector<double> sums;
    for (int time = 0; time < 2; ++time) {
      require(
          measure_gradient(device.data(), elements, squared_norm.data(), workspace.data(), nullptr),
          "measure");
      sums.push_back(squared_norm.to_host()[0]);
    }
    CHECK(std::fabs(sums[0] / exact - 1) < 1.8e-7);
    CHECK(sums[0] == sums[1]);
  }
}

TEST_CASE("the largest floats do not overflow, and their norm is right") {
  NEED_GPUS(1);
  // 1000 elements of 3e38: the squared norm is 9e79, beyond any float.
  const auto g = upload(std::vector<float>(1000, 3e38f));
  DeviceBuffer<double> squared_norm(1);
  DeviceBuffer<double> workspace(reduction_slots);
  require(measure_gradient(g.data(), 1000, squared_norm.data(), workspace.data(), nullptr),
          "measure");
  CHECK(squared_norm.to_host()[0] == Approx(9e79).epsilon(1e-6));
}

TEST_CASE("ranks that share their squared norms clip alike, as in the emulated world") {
  NEED_GPUS(1);
  // Three ranks one after the other; share_norm (nccl) leaves the mean over the ranks on each.
  constexpr std::size_t elements = 4099;
  std::vector<std::vector<float>> gradients;
  for (unsigned r = 0; r < 3; ++r) {
    gradients.push_back(random_values(elements, r + 1));
    for (float& x : gradients.back()) x *= float(r + 1);
  }
  const std::vector<std::size_t> sizes{elements};
  emulated::World world;
  world.tensors = tensor_layout(sizes);
  world.ranks = 3;
  world.gradient_clipping = 1;
  for (const ClipNorm clip : {ClipNorm::shared, ClipNorm::local}) {
    world.quirks.clip_norm = clip;
    const auto expected = *emulated::reduce(world, gradients, false);

    DeviceBuffer<double> workspace(reduction_slots);
    std::vector<DeviceBuffer<float>> g;
    std::vector<double> squares;
    for (const auto& gradient : gradients) {
      g.push_back(upload(gradient));
      DeviceBuffer<double> squared_norm(1);
      require(measure_gradient(g.back().data(), elements, squared_norm.data(), workspace.data(),
                               nullptr),
              "measure");
      squares.push_back(squared_norm.to_host()[0]);
    }
    const double mean = (squares[0] + squares[1] + squares[2]) / 3;
    for (std::size_t r = 0; r < 3; ++r) {
      const auto squared_norm =
          upload(std::vector<double>{clip == ClipNorm::shared ? mean : squares[r]});
      const DeviceBuffer<float> factor(1);
      require(gradient_factor(squared_norm.data(), 1, 1, factor.data(), nullptr), "factor");
      require(unscale({g[r].data(), factor.data()}, g[r].data(), elements, nullptr), "clip");
      CHECK(relative_distance(g[r].to_host(), expected[r]) < 1e-6);
    }
  }
}
