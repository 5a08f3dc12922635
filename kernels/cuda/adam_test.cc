#include "kernels/cuda/adam.h"

#include <cuda_fp16.h>

#include "kernels/cuda/gpu_test.h"
#include "kernels/layout.h"
#include "kernels/reference/adam.h"
#include "kernels/reference/compression.h"
#include "kernels/reference/half.h"

using namespace lambcast;
using namespace lambcast::cuda;

namespace {

constexpr std::size_t few = emulated_device ? 9003 : 100003;  // not a multiple of 4

// The same state on both sides. Kernels are compiled without contraction, so elementwise results
// must have the same bits.
struct Both {
  std::size_t elements;
  HalfFormat format = HalfFormat::fp16;  // format of the weights' 16-bit copy
  std::vector<float> p = random_values(elements, 1), m = random_values(elements, 2);
  std::vector<float> v = random_values(elements, 3, 0.6), u = random_values(elements, 4);
  std::vector<float> g = random_values(elements, 5);
  DeviceBuffer<float> dp = upload(p), dm = upload(m), dv = upload(v), du = upload(u),
                      dg = upload(g);
  DeviceBuffer<std::uint16_t> half{elements};

  Unseen unseen = Unseen::stay;

  // Elements without a gradient: whole quads, one element of a quad, and the last one.
  void leave_unseen(Unseen how) {
    for (std::size_t e = 0; e < elements; ++e) {
      if (e / 64 % 3 == 1 || e % 97 == 0 || e + 1 == elements) v[e] = 0;
    }
    dv.assign(v);
    unseen = how;
  }
  AdamState state() const {
    return {.p = dp.data(),
            .m = dm.data(),
            .v = dv.data(),
            .u = du.data(),
            .half_p = {half.data(), format},
            .elements = elements,
            .unseen = unseen};
  }
  void check() const {
    CHECK((dp.to_host() == p));
    CHECK((dm.to_host() == m));
    CHECK((dv.to_host() == v));
    CHECK((du.to_host() == u));
    const auto copy = half.to_host();
    std::size_t other = 0;
    for (std::size_t e = 0; e < elements; ++e) {
      other += copy[e] != reference::to_half(p[e], format);
    }
    CHECK(other == 0);
  }
};

const AdamOptions options{.lr = 0.01, .weight_decay = 0.1};

}  // namespace

TEST_CASE("Adam steps on the GPU equal the reference's, with and without bias correction") {
  NEED_GPUS(1);
  for (const bool bias_correction : {false, true}) {
    AdamOptions o = options;
    o.bias_correction = bias_correction;
    Both both{few};
    for (int step = 1; step <= int(test_steps); ++step) {
      reference::adam_step(both.p, both.m, both.v, both.g, o, step);
      require(adam_step(both.state(), both.dg.data(), o, step, nullptr), "adam_step");
    }
    both.check();
  }
}

TEST_CASE(
    "a learning rate in device memory carries over from one launch of the same step to the next") {
  NEED_GPUS(1);
  Both both{few};
  DeviceBuffer<double> lr(1), lrs(1);
  AdamState state = both.state();
  state.lr = lr.data();
  state.lrs = lrs.data();
  double sum = 0;
  for (const double rate : {0.03, 0.0, 0.005}) {
    require(cudaMemcpy(lr.data(), &rate, sizeof rate, cudaMemcpyHostToDevice), "cudaMemcpy");
    AdamOptions now = options;
    now.lr = rate;
    reference::adam_step(both.p, both.m, both.v, both.g, now, 1);
    require(adam_step(state, both.dg.data(), options, 1, nullptr), "adam_step");
    reference::zero_one_local_step(both.p, both.m, both.v, both.u, both.g, now);
    if (rate == 0.005) {
      reference::zero_one_sync_begin(both.p, both.v, both.u, now);
      require(zero_one_sync_begin(state, both.dg.data(), options, nullptr), "sync_begin");
    } else {
      require(zero_one_local_step(state, both.dg.data(), options, nullptr), "local_step");
    }
    sum += rate;
    CHECK(lrs.to_host()[0] == sum);
  }
  both.check();
  reference::zero_one_sync_end(both.p, both.m, both.v, both.u, sum, options);
  require(zero_one_sync_end(state, 1e9, options, nullptr), "sync_end");
  both.check();
  CHECK(lrs.to_host()[0] == 0);
}

TEST_CASE("a momentum in memory moves the weights as the reference's does") {
  NEED_GPUS(1);
  for (const Unseen unseen : {Unseen::stay, Unseen::move}) {
    Both both{few};
    both.leave_unseen(unseen);
    reference::adam_apply(both.p, both.m, both.v, options, unseen);
    require(adam_apply(both.state(), options, nullptr), "adam_apply");
    both.check();
  }
}

namespace {

// A buffer of three tensors, each with its own signs and scales in several chunks: the packed form
// for kernels, and the decoded form.
struct PackedTensors {
  std::vector<float> decoded, mask;
  std::vector<DeviceBuffer<std::uint8_t>> signs;
  std::vector<DeviceBuffer<float>> scales;
  DeviceBuffer<PackedRun> runs;
  DeviceBuffer<float> device_mask;

  explicit PackedTensors(std::size_t elements) : mask(elements, 1.0f) {
    std::vector<PackedRun> all;
    for (const std::size_t end : {std::size_t{4}, elements / 3 & ~std::size_t{3}, elements}) {
      const std::size_t size = end - decoded.size(), chunk = chunk_layout(size, 3).chunk;
      std::vector<std::uint8_t> packed(3 * chunk / 8);
      const auto of_chunks = random_values(3, unsigned(end), 0.6);
      for (std::size_t b = 0; b < packed.size(); ++b) packed[b] = std::uint8_t(b * 37 + end);
      std::vector<float> x(size);
      reference::decode(packed, of_chunks, chunk, x);
      decoded.insert(decoded.end(), x.begin(), x.end());
      signs.push_back(upload(packed));
      scales.push_back(upload(of_chunks));
      all.push_back({end, signs.back().data(), scales.back().data(), chunk});
    }
    for (std::size_t e = 0; e < elements; e += 11) mask[e] = e % 2 == 0 ? 0 : 0.5f;
    runs = upload(all);
    device_mask = upload(mask);
  }
  PackedAverage average(bool masked) const {
    return {.runs = runs.data(), .mask = masked ? device_mask.data() : nullptr};
  }
  std::vector<float> values(bool masked) const {
    std::vector<float> x = decoded;
    if (masked) reference::apply_mask(x, mask);
    return x;
  }
};

}  // namespace

TEST_CASE("steps that decode equal the reference's with decoded values") {
  NEED_GPUS(1);
  const PackedTensors packed(few);
  for (const bool masked : {false, true}) {
    for (const Unseen unseen : {Unseen::stay, Unseen::move}) {
      Both both{few};
      both.leave_unseen(unseen);
      const auto average = packed.average(masked);
      const auto x = packed.values(masked);
      both.m = x;
      reference::adam_apply(both.p, both.m, both.v, options, unseen);
      require(onebit_adam_step(both.state(), average, options, nullptr), "onebit_adam_step");
      both.check();
      reference::zero_one_onebit_step(both.p, both.m, both.v, x, options, unseen);
      require(zero_one_onebit_step(both.state(), average, options, nullptr), "onebit_step");
      both.check();
      both.u = x;
      reference::zero_one_sync_end(both.p, both.m, both.v, both.u, 0.05, options, unseen);
      require(zero_one_sync_end(both.state(), average, 0.05, options, nullptr), "sync_end");
      both.check();
    }
  }
  // A buffer that is sent whole.
  Both both{few};
  const auto scales = upload(std::vector<float>{0.5f, 0.25f});
  const std::size_t chunk = chunk_layout(few, 2).chunk;
  const std::vector<std::uint8_t> signs(2 * chunk / 8, 0x5a);
  const auto on_device = upload(signs);
  reference::decode(signs, std::vector<float>{0.5f, 0.25f}, chunk, both.m);
  reference::adam_apply(both.p, both.m, both.v, options);
  const PackedRun all{0, on_device.data(), scales.data(), chunk};
  require(onebit_adam_step(both.state(), {.all = all}, options, nullptr), "onebit_adam_step");
  both.check();
}

namespace {

void every_kind_of_step(Both both) {
  const Unseen unseen = both.unseen;
  reference::zero_one_onebit_step(both.p, both.m, both.v, both.g, options, unseen);
  require(zero_one_onebit_step(both.state(), both.dg.data(), options, nullptr), "onebit_step");
  both.check();
  reference::zero_one_local_step(both.p, both.m, both.v, both.u, both.g, options, unseen);
  require(zero_one_local_step(both.state(), both.dg.data(), options, nullptr), "local_step");
  both.check();
  reference::zero_one_local_step(both.p, both.m, both.v, both.u, both.g, options, unseen);
  reference::zero_one_sync_begin(both.p, both.v, both.u, options, unseen);
  require(zero_one_sync_begin(both.state(), both.dg.data(), options, nullptr), "sync_begin");
  both.check();
  reference::zero_one_sync_end(both.p, both.m, both.v, both.u, 0.05, options, unseen);
  require(zero_one_sync_end(both.state(), 0.05, options, nullptr), "sync_end");
  both.check();
}

}  // namespace

TEST_CASE("every kind of 0/1 Adam step on the GPU equals the reference's") {
  NEED_GPUS(1);
  every_kind_of_step({few});
  every_kind_of_step({few, HalfFormat::bf16});
  for (const Unseen unseen : {Unseen::stay, Unseen::move}) {
    Both both{few};
    both.leave_unseen(unseen);
    every_kind_of_step(std::move(both));
  }
}

TEST_CASE("every kind of 0/1 Adam step over many passes equals the reference's", "[large]") {
  NEED_GPUS(1);
  every_kind_of_step({many_passes});
}

TEST_CASE("groups of tensors in one launch equal the reference's, tensor by tensor") {
  // Runs that end inside a quad, runs of one element, and adjacent runs of the same group.
  NEED_GPUS(1);
  std::vector<std::size_t> sizes{5, 1, 1, 0, 1, 4000, 2};
  std::vector<ParameterGroup> group_of{{1, 0.1}, {2, 0},   {1, 0.1}, {2, 0},
                                       {0.5, 0}, {1, 0.1}, {1, 0.1}};
  sizes.push_back(few - 4010);
  group_of.push_back({0.25, 0});
  const TensorLayout tensors = tensor_layout(sizes);
  const std::vector<GroupRun> runs = group_runs(tensors, group_of);
  CHECK(runs.size() == 6);
  const auto device_runs = upload(runs);
  Both both{few};
  const auto state = [&] {
    AdamState s = both.state();
    s.runs = device_runs.data();
    return s;
  };
  const auto of_all = [&](auto f) {
    for (std::size_t t = 0; t < sizes.size(); ++t) {
      const auto of = [&](std::vector<float>& x) { return tensors.view(std::span(x), t); };
      f(of(both.p), of(both.m), of(both.v), of(both.u), of(both.g), in_group(options, group_of, t),
        group_of[t].lr_scale);
    }
  };
  of_all([](auto p, auto m, auto v, auto, auto g, const AdamOptions& o, double) {
    reference::adam_step(p, m, v, g, o, 1);
  });
  require(adam_step(state(), both.dg.data(), options, 1, nullptr), "adam_step");
  both.check();
  of_all([](auto p, auto m, auto v, auto u, auto g, const AdamOptions& o, double) {
    reference::zero_one_local_step(p, m, v, u, g, o);
  });
  require(zero_one_local_step(state(), both.dg.data(), options, nullptr), "local_step");
  both.check();
  of_all([](auto p, auto m, auto v, auto u, auto g, const AdamOptions& o, double) {
    reference::zero_one_local_step(p, m, v, u, g, o);
    reference::zero_one_sync_begin(p, v, u, o);
  });
  require(zero_one_sync_begin(state(), both.dg.data(), options, nullptr), "sync_begin");
  of_all([](auto p, auto m, auto v, auto u, auto, const AdamOptions& o, double lr_scale) {
    reference::zero_one_sync_end(p, m, v, u, 0.05 * lr_scale, o);
  });
  require(zero_one_sync_end(state(), 0.05, options, nullptr), "sync_end");
  both.check();
}
