#include "kernels/emulated_world/plain.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/emulated_world/onebit_adam.h"
#include "kernels/emulated_world/training.h"
#include "kernels/emulated_world/zero_one_adam.h"
#include "sim/base/error.h"

using namespace lambcast;
using namespace lambcast::emulated;

TEST_CASE("Adam over n ranks is Adam on the mean gradient") {
  const iris::Problem problem = iris::network();
  Adam alone = adam(world_of(problem, 1), {}), three = adam(world_of(problem, 3), {});
  for (int k = 0; k < 10; ++k) {
    step(alone, gradients(problem, alone));
    step(three, gradients(problem, three));
  }
  // 150 rows divide by 3, so the mean of the ranks' gradients is the full gradient up to rounding.
  for (std::size_t e = 0; e < alone.p.size(); ++e) {
    CHECK(three.p[e] == Approx(alone.p[e]).epsilon(1e-3).margin(1e-5));
  }
}

TEST_CASE("Lion over n ranks is Lion on the mean gradient, group by group") {
  World world;
  world.tensors = tensor_layout(std::vector<std::size_t>{3, 2});
  world.ranks = 2;
  world.initial = {1, 2, 3, 4, 5};
  world.group_of = {{1, 0.5}, {2, 0}};
  Lion o = lion(world, {.lr = 0.25, .beta2 = 0.5});
  std::vector<float> p = world.initial, m(5);
  for (int k = 0; k < 5; ++k) {
    const std::vector<std::vector<float>> g{{1, 2, -3, 4, -5.f * float(k)}, {-2, 1, 1, 1, 7}};
    CHECK(step(o, g) == Step::full);
    for (std::size_t t = 0; t < 2; ++t) {
      reference::lion_step(
          world.tensors.view(std::span(p), t), world.tensors.view(std::span(m), t),
          world.tensors.view(std::span<const float>(mean(g)), t),
          {.lr = t == 0 ? 0.25 : 0.5, .beta2 = 0.5, .weight_decay = t == 0 ? 0.5 : 0});
    }
  }
  CHECK(o.p == p);
  CHECK(p[3] != world.initial[3]);
}

TEST_CASE("plain optimizers skip an overflow too") {
  const iris::Problem problem = iris::network();
  Adam a = adam(world_of(problem, 2), {});
  Lamb l = lamb(world_of(problem, 2), {});
  auto g = gradients(problem, a);
  g[0][0] = HUGE_VALF;
  CHECK(step(a, g) == Step::skipped);
  CHECK(step(l, g) == Step::skipped);
  CHECK(a.step == 0);
  CHECK(l.p == problem.initial);
}

TEST_CASE("a tensor's group sets its learning rate and weight decay, for any optimizer") {
  // One step of each optimizer with groups moves every tensor as a step with that tensor's options.
  const iris::Problem problem = iris::network();
  const TensorLayout& tensors = problem.tensors;
  World world = world_of(problem, 3);
  const std::vector<ParameterGroup> groups{{1, 0.1}, {2, 0}, {1, 0.1}, {0.5, 0.2}};
  const auto check = [&](auto make, auto options, auto set) {
    world.group_of = groups;
    auto grouped = make(world, options);
    step(grouped, gradients(problem, grouped));
    world.group_of.clear();
    for (std::size_t t = 0; t < groups.size(); ++t) {
      auto own = options;
      set(own, groups[t]);
      auto alone = make(world, own);
      step(alone, gradients(problem, alone));
      for (std::size_t e = tensors.offsets[t]; e < tensors.offsets[t + 1]; ++e) {
        REQUIRE(weights(grouped, 0)[e] == weights(alone, 0)[e]);
      }
    }
  };
  const auto plain = [](auto& options, const ParameterGroup& group) {
    options.lr *= group.lr_scale;
    options.weight_decay = group.weight_decay;
  };
  const auto nested = [&](auto& options, const ParameterGroup& group) {
    plain(options.adam, group);
  };
  check(adam, AdamOptions{}, plain);
  check(lamb, LambOptions{}, plain);
  check(onebit_adam, OnebitAdamOptions{}, nested);
  check(zero_one_adam, ZeroOneAdamOptions{}, nested);

  world.group_of.assign(3, {});
  CHECK_THROWS_WITH(adam(world, {}), "group_of: does not have one entry per tensor");
  world.group_of.assign(4, {0, 0});
  CHECK_THROWS_WITH(adam(world, {}),
                    "lr_scale: must be more than 0: what shall not move is not given to the "
                    "optimizer");
}

TEST_CASE("groups of 0/1 Adam apply in local steps and synchronisations") {
  // On its own gradient, a group with twice the rate equals an optimizer with twice the rate.
  const iris::Problem problem = iris::network();
  World world = world_of(problem, 2);
  ZeroOneAdamOptions options;
  options.adam.lr = 0.01;
  options.var_freeze_step = 2;
  options.local_step_scaler = 3;
  world.group_of.assign(4, {2, 0.1});
  ZeroOneAdam grouped = zero_one_adam(world, options);
  world.group_of.clear();
  options.adam.lr = 0.02;
  options.adam.weight_decay = 0.1;
  ZeroOneAdam alone = zero_one_adam(world, options);
  for (int k = 0; k < 12; ++k) {
    const Step did = step(grouped, gradients(problem, grouped));
    CHECK(step(alone, gradients(problem, alone)) == did);
    for (std::size_t e = 0; e < problem.initial.size(); ++e) {
      REQUIRE(grouped.ranks[1].p[e] == Approx(alone.ranks[1].p[e]).epsilon(1e-5));
    }
  }
}

TEST_CASE("the gradient sum of an engine in 16 bits drifts from the exact one") {
  // fp16 has 11 bits: 1 + 0.0003 rounds to 1, three times.
  World world = world_of(iris::network(), 4);
  std::vector<std::vector<float>> g(4, std::vector<float>(world.tensors.elements()));
  g[0][0] = 1;
  g[1][0] = g[2][0] = g[3][0] = 0.0003f;
  CHECK((*reduce(world, g, true))[3][0] == Approx(1.0009 / 4));
  world.quirks.gradient_sum = GradientSum::half;
  CHECK((*reduce(world, g, true))[3][0] == 0.25f);
  // A gradient below 2^-25 is lost unless the loss was scaled.
  for (auto& rank : g) rank[0] = 1e-8f;
  CHECK((*reduce(world, g, true))[0][0] == 0);
  world.loss_scale = 65536;
  CHECK((*reduce(world, g, true))[0][0] == Approx(1e-8).epsilon(1e-3));
  // bf16 has the range of fp32 and 8 bits: 1 + 0.003 rounds to 1.
  world.loss_scale = 1;
  world.quirks.gradient_sum = GradientSum::bfloat16;
  CHECK((*reduce(world, g, true))[0][0] == Approx(1e-8).epsilon(1e-2));
  g[0][0] = 1;
  g[1][0] = g[2][0] = g[3][0] = 0.003f;
  CHECK((*reduce(world, g, true))[2][0] == 0.25f);
}

// Error of fp16 sums after 60 steps with clipping, relative to the movement of the weights: almost
// zero if ranks agree, several per cent if their gradients cancel to a thousandth or less.
TEST_CASE("fp16 sums of gradients change the weights' path if the ranks' gradients cancel") {
  const iris::Problem problem = iris::network();
  const auto after_60_steps = [&](GradientSum sum, float apart) {
    World world = world_of(problem, 4);
    world.gradient_clipping = 0.1;
    world.quirks.gradient_sum = sum;
    Adam o = adam(world, {.lr = 0.01, .bias_correction = true});
    for (int k = 0; k < 60; ++k) {
      auto g = gradients(problem, o);
      for (std::size_t e = 0; e < o.p.size(); ++e) {
        const float noise = apart * g[0][e] * static_cast<float>(1 + (k + static_cast<int>(e)) % 7);
        for (std::size_t r = 0; r < 4; ++r) g[r][e] += r % 2 == 0 ? noise : -noise;
      }
      step(o, g);
    }
    return o.p;
  };
  const auto off = [&](float apart) {
    const auto exact = after_60_steps(GradientSum::full_precision, apart);
    const auto p = after_60_steps(GradientSum::half, apart);
    double error = 0, way = 0;
    for (std::size_t e = 0; e < p.size(); ++e) {
      error += std::pow(p[e] - exact[e], 2);
      way += std::pow(exact[e] - problem.initial[e], 2);
    }
    return std::sqrt(error / way);
  };
  CAPTURE(off(0), off(300), off(1000));
  CHECK(off(0) < 1e-3);
  CHECK(off(300) > 0.03);
  CHECK(off(1000) > 0.1);
}
