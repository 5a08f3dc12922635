// Steps that read a gradient in fp32, fp16 or bf16 with its factor have the bits of the references,
// which first widen the gradient and multiply it by the factor.
#include "kernels/cuda/adam.h"
#include "kernels/cuda/gpu_test.h"
#include "kernels/cuda/gradient.h"
#include "kernels/cuda/lamb_tensors.h"
#include "kernels/cuda/lars.h"
#include "kernels/cuda/lion.h"
#include "kernels/cuda/one_device_world.h"
#include "kernels/reference/adam.h"
#include "kernels/reference/gradient.h"
#include "kernels/reference/half.h"
#include "kernels/reference/lamb.h"

using namespace lambcast;
using namespace lambcast::cuda;

namespace {

constexpr std::size_t few_gradients = emulated_device ? 9003 : 100003;  // not a multiple of 4
constexpr double loss_scale = 1024, limit = 1;

// A gradient in its original format on a device, and the reference's `unscaled` gradient.
struct ArrivedGradient {
  GradientFormat format;
  DeviceBuffer<float> full;
  DeviceBuffer<std::uint16_t> half;
  DeviceBuffer<float> factor{1};
  std::vector<float> unscaled;

  explicit ArrivedGradient(GradientFormat as, unsigned seed = 5) : format(as) {
    std::vector<float> g = random_values(few_gradients, seed);
    for (float& x : g) x *= static_cast<float>(loss_scale);
    std::vector<std::uint16_t> bits;
    for (float& x : g) bits.push_back(reference::to_half(x, half_format()));
    full = upload(g);
    half = upload(bits);

    DeviceBuffer<double> squared(1), workspace(reduction_slots);
    require(measure_gradient(arrived(), g.size(), squared.data(), workspace.data(), nullptr),
            "measure_gradient");
    require(gradient_factor(squared.data(), loss_scale, limit, factor.data(), nullptr),
            "gradient_factor");
    const float by = reference::clip_factor(std::sqrt(squared.to_host()[0]), loss_scale, limit);
    CHECK(factor.to_host()[0] == by);
    CHECK(by < 1 / loss_scale);  // it clips

    unscaled = g;
    if (format == GradientFormat::fp32)
      reference::unscale(unscaled, by);
    else
      reference::unscale(bits, unscaled, by, half_format());
  }
  HalfFormat half_format() const {
    return format == GradientFormat::bf16 ? HalfFormat::bf16 : HalfFormat::fp16;
  }
  Gradient arrived() const {
    return format == GradientFormat::fp32 ? Gradient(full.data())
                                          : Gradient(HalfPointer(half.data(), half_format()));
  }
  Gradient scaled() const {
    Gradient g = arrived();
    g.factor = factor.data();
    return g;
  }
};

// Calls f(gradient) for every format.
template <typename F>
void for_every_format(F f) {
  for (const auto format : {GradientFormat::fp32, GradientFormat::fp16, GradientFormat::bf16}) {
    INFO("format " << int(format));
    f(ArrivedGradient(format));
  }
}

struct Moments {
  std::vector<float> p = random_values(few_gradients, 1), m = random_values(few_gradients, 2),
                     v = random_values(few_gradients, 3, 0.6), u = random_values(few_gradients, 4);
  DeviceBuffer<float> dp = upload(p), dm = upload(m), dv = upload(v), du = upload(u);

  AdamState adam() const { return {dp.data(), dm.data(), dv.data(), du.data(), {}, few_gradients}; }
  void check() const {
    CHECK((dp.to_host() == p));
    CHECK((dm.to_host() == m));
    CHECK((dv.to_host() == v));
    CHECK((du.to_host() == u));
  }
};

const AdamOptions adam{.lr = 0.01, .weight_decay = 0.1};

}  // namespace

TEST_CASE("Adam's steps read gradients in three formats with the reference's bits") {
  NEED_GPUS(1);
  for_every_format([](const ArrivedGradient& g) {
    Moments x;
    reference::adam_step(x.p, x.m, x.v, g.unscaled, adam, 1);
    require(adam_step(x.adam(), g.scaled(), adam, 1, nullptr), "adam_step");
    x.check();
    reference::zero_one_onebit_step(x.p, x.m, x.v, g.unscaled, adam);
    require(zero_one_onebit_step(x.adam(), g.scaled(), adam, nullptr), "onebit_step");
    x.check();
    reference::zero_one_local_step(x.p, x.m, x.v, x.u, g.unscaled, adam);
    require(zero_one_local_step(x.adam(), g.scaled(), adam, nullptr), "local_step");
    x.check();
    reference::zero_one_local_step(x.p, x.m, x.v, x.u, g.unscaled, adam);
    reference::zero_one_sync_begin(x.p, x.v, x.u, adam);
    require(zero_one_sync_begin(x.adam(), g.scaled(), adam, nullptr), "sync_begin");
    x.check();
  });
}

TEST_CASE("Lion reads gradients in three formats with the reference's bits") {
  NEED_GPUS(1);
  for_every_format([](const ArrivedGradient& g) {
    Moments x;
    const reference::LionOptions options{.lr = 0.01, .weight_decay = 0.1};
    reference::lion_step(x.p, x.m, g.unscaled, options);
    require(lion_step({x.dp.data(), x.dm.data(), {}, few_gradients}, g.scaled(), options, nullptr),
            "lion_step");
    x.check();
  });
}

TEST_CASE("LAMB's moments read gradients in three formats with the reference's bits") {
  NEED_GPUS(1);
  const TensorLayout layout = tensor_layout(std::vector<std::size_t>{701, few_gradients - 701});
  const LambTensors tensors(layout);
  const LambOptions lamb{.lr = 0.01, .weight_decay = 0.1};
  for_every_format([&](const ArrivedGradient& g) {
    Moments x;
    for (std::size_t t = 0; t < layout.tensors(); ++t) {
      reference::lamb_step(layout.view(std::span(x.p), t), layout.view(std::span(x.m), t),
                           layout.view(std::span(x.v), t),
                           layout.view(std::span<const float>(g.unscaled), t), lamb);
    }
    const LambState state = tensors.state(x.dp.data(), x.dm.data(), x.dv.data());
    require(lamb_step(state, g.scaled(), lamb, {}, nullptr), "lamb_step");
    CHECK((x.dm.to_host() == x.m));
    CHECK((x.dv.to_host() == x.v));
    CHECK(relative_distance(x.dp.to_host(), x.p) < 1e-6);
  });
}

TEST_CASE("LARS reads gradients in three formats with the reference's results") {
  NEED_GPUS(1);
  const LambTensors tensors(tensor_layout(std::vector<std::size_t>{few_gradients}));
  const reference::Lars lars{{.lr = 0.1, .weight_decay = 0.01}};
  const reference::Part part = reference::whole_part({1, few_gradients});
  for_every_format([&](const ArrivedGradient& g) {
    Moments x;
    reference::Lars::State expected = lars.state(part);
    expected.velocity = x.m;
    const reference::View view{part, x.p, g.unscaled};
    lars.take(0, view, expected, lars.sums(0, view, expected, 1), 1);
    lars.apply(view, expected, 1);
    const LambState state = tensors.state(x.dp.data(), x.dm.data(), x.dv.data());
    DeviceBuffer<double> squares(2);
    require(lars_norms(state, g.scaled(), squares.data(), nullptr), "lars_norms");
    require(lars_apply(state, g.scaled(), lars.options, squares.data(), nullptr), "lars_apply");
    CHECK(relative_distance(x.dp.to_host(), x.p) < 1e-6);
    CHECK(relative_distance(x.dm.to_host(), expected.velocity) < 1e-6);
  });
}

TEST_CASE("the worker phase reads gradients in three formats with the reference's bits") {
  NEED_GPUS(1);
  const ChunkLayout layout = chunk_layout(few_gradients, 4);
  for_every_format([&](const ArrivedGradient& g) {
    for (const bool momentum : {true, false}) {
      OneDeviceWorld device(layout, Padding::excluded);
      const Moments x;
      WorkerPhase phase;
      phase.gradient = g.scaled();
      if (momentum) phase.x = x.dm.data(), phase.beta1 = 0.9;
      std::vector<float> sent = momentum ? x.m : g.unscaled;
      if (momentum) reference::update_momentum(sent, g.unscaled, 0.9, 1.0f);
      std::vector<float> error(layout.padded);
      std::vector<std::uint8_t> signs(layout.packed_bytes());
      const float scale = reference::worker_phase(sent, error, signs, Padding::excluded);
      device.compress(device.ranks[0], phase);
      CHECK((device.ranks[0].signs.to_host() == signs));
      CHECK(device.ranks[0].worker_scale.to_host()[0] == Approx(scale).epsilon(1e-6));
      // No error is fed back in the first call, so the buffer itself is kept.
      std::vector<float> kept = device.ranks[0].worker_c.to_host();
      kept.resize(few_gradients);
      CHECK((kept == sent));
    }
  });
}

TEST_CASE("a gradient in 16 bits must begin at a multiple of four elements") {
  NEED_GPUS(1);
  const ArrivedGradient g(GradientFormat::fp16);
  const Moments x;
  AdamState state = x.adam();
  state.elements = 8;
  CHECK(adam_step(state, g.scaled().behind(4), adam, 1, nullptr) == cudaSuccess);
  CHECK(adam_step(state, g.scaled().behind(2), adam, 1, nullptr) == cudaErrorMisalignedAddress);
  CHECK_FALSE(Gradient().behind(4));
}
