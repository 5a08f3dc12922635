// Treatment of weights without a gradient before the compression stage (Unseen).
#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/emulated_world/onebit_adam.h"
#include "kernels/emulated_world/onebit_lamb.h"
#include "kernels/emulated_world/zero_one_adam.h"

using namespace lambcast;
using namespace lambcast::emulated;

namespace {

constexpr int steps = 20;
constexpr std::size_t never = 12, late = 30, seen = 36;  // first elements of these kinds
constexpr double lr = 0.01;

World world_with(Unseen unseen, int ranks) {
  World world;
  world.tensors = tensor_layout(std::vector<std::size_t>{9, 40});
  world.ranks = ranks;
  for (std::size_t e = 0; e < world.tensors.elements(); ++e) {
    world.initial.push_back(static_cast<float>(1 + std::sin(0.7 * double(e)) / 2));
  }
  world.quirks.unseen = unseen;
  return world;
}

std::vector<std::vector<float>> gradients_of(const World& world, int step) {
  std::vector<std::vector<float>> all;
  for (int r = 0; r < world.ranks; ++r) {
    std::vector<float>& g = all.emplace_back(world.initial.size());
    for (std::size_t e = 0; e < g.size(); ++e) {
      const bool reached = e < never || e >= seen || (e >= late && step >= 10);
      if (reached) g[e] = static_cast<float>(std::sin(1.3 * double(e) + 2.1 * r + 0.7 * step));
    }
  }
  return all;
}

template <typename Optimizer>
Optimizer trained(Optimizer optimizer) {
  for (int k = 0; k < steps; ++k) step(optimizer, gradients_of(optimizer.world, k));
  return optimizer;
}

template <typename Optimizer>
void check_moved(const Optimizer& optimizer, float decay) {
  const World& world = optimizer.world;
  for (int r = 0; r < world.ranks; ++r) {
    const auto p = weights(optimizer, r);
    for (std::size_t e = 0; e < p.size(); ++e) {
      float expected = world.initial[e];
      for (int k = 0; k < steps; ++k) expected -= static_cast<float>(lr) * (decay * expected);
      if (e < never || e >= seen) {
        CHECK(std::fabs(p[e] - expected) > 1e-3f);
      } else if (world.quirks.unseen == Unseen::stay) {
        CHECK(p[e] == expected);
      } else if (world.ranks > 1) {
        CHECK(std::fabs(p[e] - expected) > 100);
      }
    }
  }
}

ZeroOneAdamOptions zero_one_options() {
  return {.adam = {.lr = lr, .weight_decay = 0.1},
          .var_freeze_step = 8,
          .var_update_scaler = 2,
          .local_step_scaler = 4,
          .local_step_clipper = 4};
}

}  // namespace

TEST_CASE("weights without a gradient before the freeze stay, and move by eps in DeepSpeed") {
  CHECK(deepspeed_quirks().unseen == Unseen::move);
  for (const int ranks : {1, 2, 3}) {
    for (const Unseen unseen : {Unseen::stay, Unseen::move}) {
      const World world = world_with(unseen, ranks);
      check_moved(trained(onebit_adam(world, {{.lr = lr, .weight_decay = 0.1}, 8})), 0.1f);
      check_moved(trained(zero_one_adam(world, zero_one_options())), 0.1f);
      OnebitLambOptions options;
      options.lamb.lr = lr;
      options.freeze_step = 8;
      check_moved(trained(onebit_lamb(world, options)), 0);
    }
  }
}

TEST_CASE("0/1 Adam moves weights first seen in a 1-bit round from the next variance update on") {
  const World world = world_with(Unseen::stay, 2);
  ZeroOneAdam o = zero_one_adam(world, zero_one_options());
  const auto all_reached = [&](int k) {
    auto g = gradients_of(world, k);
    for (auto& of_rank : g) of_rank[never] = 1;
    return g;
  };
  std::vector<Step> kinds;
  for (int k = 0; k < 6; ++k) {
    const float before = o.ranks[0].p[never];
    kinds.push_back(step(o, k < 4 ? gradients_of(world, k) : all_reached(k)));
    const bool moves = k == 5;  // step 6 updates the variance, step 5 is a 1-bit round
    CHECK((std::fabs(o.ranks[0].p[never] - before) > 0.002f) == moves);
  }
  CHECK(kinds ==
        std::vector{Step::full, Step::full, Step::onebit, Step::full, Step::onebit, Step::full});
}
