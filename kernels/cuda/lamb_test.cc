#include "kernels/cuda/lamb_tensors.h"

#include <cuda_fp16.h>

#include "kernels/cuda/compression.h"
#include "kernels/cuda/gpu_test.h"
#include "kernels/reference/compression.h"
#include "kernels/reference/half.h"
#include "kernels/reference/lamb.h"

using namespace lambcast;
using namespace lambcast::cuda;

namespace {

// Hundreds of tensors of irregular sizes, some of several pieces, one empty.
TensorLayout many_tensors(std::size_t largest) {
  std::vector<std::size_t> sizes{0, largest, 1};
  for (std::size_t t = 0; t < (emulated_device ? 30 : 300); ++t) sizes.push_back(1 + 37 * t % 1500);
  return tensor_layout(sizes);
}

// One optimizer state, in the reference and on the device.
struct BothLambs {
  std::size_t largest = 50001;
  std::vector<ParameterGroup> group_of = {};
  TensorLayout tensors = many_tensors(largest);
  std::size_t elements = tensors.elements(), count = tensors.tensors();
  std::vector<float> p = random_values(elements, 1), m = random_values(elements, 2);
  std::vector<float> v = random_values(elements, 3, 0.6), fresh = v;
  std::vector<reference::RunningCoefficient> running =
      std::vector<reference::RunningCoefficient>(count);
  std::vector<float> last_factor = std::vector<float>(count, 1.0f);

  LambTensors per_tensor{tensors, group_of};
  DeviceBuffer<float> dp = upload(p), dm = upload(m), dv = upload(v), dfresh = upload(fresh);
  DeviceBuffer<float> factor = upload(last_factor);
  DeviceBuffer<std::uint16_t> half{elements};
  HalfFormat format = HalfFormat::fp16;  // format of the weights' 16-bit copy

  LambState state() const {
    return per_tensor.state(dp.data(), dm.data(), dv.data(), {half.data(), format});
  }
  std::span<float> of(std::vector<float>& flat, std::size_t t) const {
    return tensors.view(std::span(flat), t);
  }
};

// Every third tensor has no decay and a smaller learning rate.
std::vector<ParameterGroup> two_groups(std::size_t largest) {
  std::vector<ParameterGroup> group_of;
  for (std::size_t t = 0; t < many_tensors(largest).tensors(); ++t) {
    group_of.push_back(t % 3 == 0 ? ParameterGroup{0.5, 0} : ParameterGroup{1, 0.01});
  }
  return group_of;
}

void lamb_agrees(std::size_t largest, unsigned steps,
                 const std::vector<ParameterGroup>& group_of = {},
                 BiasCorrection correction = BiasCorrection::none) {
  for (const CoefficientAverage how :
       {CoefficientAverage::bias_corrected, CoefficientAverage::from_zero}) {
    BothLambs both{largest, group_of};
    if (how == CoefficientAverage::from_zero) both.format = HalfFormat::bf16;
    const LambOptions options{.lr = 0.01, .weight_decay = 0.01, .bias_correction = correction};
    for (unsigned step = 0; step < steps; ++step) {
      auto g = random_values(both.elements, 10 + step);
      const auto device_g = upload(g);
      for (std::size_t t = 0; t < both.count; ++t) {
        reference::add(
            both.running[t],
            reference::lamb_step(both.of(both.p, t), both.of(both.m, t), both.of(both.v, t),
                                 both.of(g, t), in_group(options, group_of, t), int(step) + 1),
            0.9, how);
      }
      require(lamb_step(both.state(), device_g.data(), options, {0.9, how}, nullptr, int(step) + 1),
              "lamb_step");
    }
    CHECK((both.dm.to_host() == both.m));  // elementwise: the same bits
    CHECK((both.dv.to_host() == both.v));
    const auto p = both.dp.to_host();
    CHECK(relative_distance(p, both.p) < 1e-5);
    const auto copy = both.half.to_host();
    std::size_t other = 0;
    for (std::size_t e = 0; e < both.elements; ++e) {
      other += copy[e] != reference::to_half(p[e], both.format);
    }
    CHECK(other == 0);
    const auto average = both.per_tensor.running_average.to_host();
    const auto weight = both.per_tensor.running_weight.to_host();
    for (std::size_t t = 0; t < both.count; ++t) {
      CHECK(average[t] == Approx(both.running[t].average).epsilon(1e-5));
      CHECK(weight[t] == Approx(both.running[t].weight).epsilon(1e-6));
    }
  }
}

void onebit_lamb_agrees(std::size_t largest, unsigned steps,
                        const std::vector<ParameterGroup>& group_of = {},
                        Unseen unseen = Unseen::stay) {
  for (const double weight_decay : {0.0, 0.01}) {
    BothLambs both{largest, group_of};
    for (std::size_t e = 0; e < both.elements; e += 50)
      both.v[e] = 0;  // elements without a gradient
    both.dv.assign(both.v);
    OnebitLambOptions options;
    options.lamb = {.lr = 0.01, .weight_decay = weight_decay};
    const ChunkLayout layout = chunk_layout(both.elements, 3);
    const auto scaling = reference::scaling_coefficients(both.m, both.tensors, {});
    DeviceBuffer<float> device_scaling(both.count);
    require(scaling_coefficients(both.state(), device_scaling.data(), nullptr), "scaling");
    const auto scaling_back = device_scaling.to_host();
    for (std::size_t t = 0; t < both.count; ++t) {
      CHECK(scaling_back[t] == Approx(scaling[t]).epsilon(1e-6));
    }
    std::vector<float> mask(both.elements, 1.0f);
    mask[100] = 0;
    const auto device_mask = upload(mask);
    for (unsigned step = 0; step < steps; ++step) {
      const auto values = random_values(layout.padded, 20 + step);
      std::vector<std::uint8_t> signs(layout.packed_bytes());
      reference::pack_signs(values, signs);
      const std::vector<float> scales{0.1f, 0.2f, 0.3f};
      std::vector<float> decoded(both.elements);
      reference::decode(signs, scales, layout.chunk, decoded);
      const auto device_signs = upload(signs);
      const auto device_scales = upload(scales);

      for (std::size_t t = 0; t < both.count; ++t) {
        OnebitLambOptions own = options;
        own.lamb = in_group(options.lamb, group_of, t);
        reference::onebit_lamb_step(both.of(both.p, t), both.of(both.m, t), both.of(both.v, t),
                                    both.of(both.fresh, t), both.of(decoded, t), both.of(mask, t),
                                    scaling[t], 1.0f, both.last_factor[t], own, unseen);
      }
      CompressedLambState x;
      x.fresh_v = both.dfresh.data();
      x.scaling = device_scaling.data();
      x.last_factor = both.factor.data();
      x.mask = device_mask.data();
      x.unseen = unseen;
      x.signs = device_signs.data();
      x.scales = device_scales.data();
      x.chunk = layout.chunk;
      // No warm-up was recorded, so the bias-corrected coefficient is 1.
      require(
          onebit_lamb_step(both.state(), x, options, CoefficientAverage::bias_corrected, nullptr),
          "onebit_lamb_step");
    }
    CHECK(relative_distance(both.dm.to_host(), both.m) < 1e-6);
    CHECK(relative_distance(both.dfresh.to_host(), both.fresh) < 1e-5);
    CHECK(relative_distance(both.dp.to_host(), both.p) < 1e-5);
    const auto factor = both.factor.to_host();
    for (std::size_t t = 0; t < both.count; ++t) {
      CHECK(factor[t] == Approx(both.last_factor[t]).epsilon(1e-5));
    }
  }
}

}  // namespace

TEST_CASE("LAMB steps on the GPU agree with the reference") {
  NEED_GPUS(1);
  lamb_agrees(50001, test_steps);
}

TEST_CASE("compression-stage steps of 1-bit LAMB on the GPU agree with the reference") {
  NEED_GPUS(1);
  onebit_lamb_agrees(50001, test_steps);
  onebit_lamb_agrees(50001, test_steps, {}, Unseen::move);
}

TEST_CASE("both stages use the learning rate and weight decay of every tensor's group") {
  NEED_GPUS(1);
  lamb_agrees(50001, test_steps, two_groups(50001));
  onebit_lamb_agrees(50001, test_steps, two_groups(50001));
}

TEST_CASE("LAMB corrects the bias of its moments as the reference does") {
  NEED_GPUS(1);
  for (const auto how : {BiasCorrection::in_moments, BiasCorrection::in_rate}) {
    lamb_agrees(1500, test_steps, {}, how);
  }
}

TEST_CASE("LAMB and 1-bit LAMB over many passes agree with the reference", "[large]") {
  NEED_GPUS(1);
  lamb_agrees(many_passes, 2);
  onebit_lamb_agrees(many_passes, 2);
}

// A step in runs lets data of a run's first pass stay in the cache for the last pass (limits.md).
TEST_CASE("LAMB and 1-bit LAMB on runs of tensors have the bits of one step on all tensors") {
  NEED_GPUS(1);
  const auto trained = [](const std::vector<std::size_t>& cuts) {
    BothLambs at{50001, two_groups(50001)};
    const LambOptions options{.lr = 0.01, .weight_decay = 0.01};
    const auto g = upload(random_values(at.elements, 10));
    const ChunkLayout chunks = chunk_layout(at.elements, 2);
    const auto scales = upload(std::vector<float>{0.25f, 0.5f});
    const DeviceBuffer<std::uint8_t> signs(chunks.packed_bytes());
    require(
        pack_signs(g.data(), signs.data(), at.elements, reference::SignRule::not_negative, nullptr),
        "pack_signs");
    for (std::size_t r = 0; r + 1 < cuts.size(); ++r) {
      const std::size_t begin = cuts[r], end = cuts[r + 1];
      const auto first = at.tensors.offsets.begin() + std::ptrdiff_t(begin);
      const TensorLayout run{{first, first + std::ptrdiff_t(end - begin + 1)}};
      const LambTensors tensors(run, std::span(at.group_of).subspan(begin, end - begin));
      const LambState state = tensors.state(at.dp.data(), at.dm.data(), at.dv.data());
      require(lamb_step(state, g.data(), options, {}, nullptr), "lamb_step");
      const auto ones = upload(std::vector<float>(end - begin, 1.0f));
      CompressedLambState x{.fresh_v = at.dfresh.data(), .scaling = ones.data()};
      const auto factors = upload(std::vector<float>(end - begin, 1.0f));
      x.last_factor = factors.data(), x.signs = signs.data(), x.scales = scales.data();
      x.chunk = chunks.chunk, x.elements = x.tail_end = at.elements;
      require(onebit_lamb_step(state, x, {.lamb = options}, CoefficientAverage::bias_corrected,
                               nullptr),
              "onebit_lamb_step");
    }
    return std::vector{at.dp.to_host(), at.dm.to_host(), at.dv.to_host(), at.dfresh.to_host()};
  };
  const std::size_t all = many_tensors(50001).tensors();
  CHECK((trained({0, all}) == trained({0, 1, 2, 7, all})));
}

TEST_CASE("padding that persists gets its decoded value unchanged") {
  NEED_GPUS(1);
  BothLambs both;
  const ChunkLayout layout = chunk_layout(both.elements, 8);
  DeviceBuffer<float> m(layout.padded);
  const std::vector<std::uint8_t> signs(layout.packed_bytes(), 0x55);  // - + - + ...
  const auto device_signs = upload(signs);
  const auto scales = upload(std::vector<float>(8, 2.0f));
  const auto scaling = upload(std::vector<float>(both.count, 4.0f));
  LambState state = both.state();
  state.m = m.data();
  CompressedLambState x;
  x.fresh_v = both.dfresh.data();
  x.scaling = scaling.data();
  x.last_factor = both.factor.data();
  x.signs = device_signs.data();
  x.scales = scales.data();
  x.chunk = layout.chunk;
  x.elements = both.elements;
  x.tail_end = layout.padded;
  require(onebit_lamb_step(state, x, {}, CoefficientAverage::bias_corrected, nullptr), "step");
  const auto back = m.to_host();
  for (std::size_t e = 0; e < layout.padded; ++e) {
    REQUIRE(back[e] == (e % 2 ? 1.0f : -1.0f) * (e < both.elements ? 0.5f : 2.0f));
  }
}
