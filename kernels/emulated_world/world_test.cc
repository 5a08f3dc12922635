#include "kernels/emulated_world/world.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/emulated_world/training.h"

using namespace lambcast;
using namespace lambcast::emulated;

TEST_CASE("clipping by the local norm scales ranks differently, by the shared norm equally") {
  World world = world_of(iris::network(), 2);
  world.gradient_clipping = 1;
  const std::size_t elements = world.tensors.elements();
  std::vector<std::vector<float>> g(2, std::vector<float>(elements));
  g[0][0] = 3;
  g[1][0] = 0.5;
  // Shared: sqrt((9 + 0.25) / 2) = 2.151 for both. Local: 3 for rank 0, under the limit for rank 1.
  const double shared = std::sqrt(9.25 / 2);
  auto seen = *reduce(world, g, false);
  CHECK(seen[0][0] == Approx(3 / shared).epsilon(1e-5));
  CHECK(seen[1][0] == Approx(0.5 / shared).epsilon(1e-5));
  world.quirks.clip_norm = ClipNorm::local;
  seen = *reduce(world, g, false);
  CHECK(seen[0][0] == Approx(1).epsilon(1e-5));
  CHECK(seen[1][0] == 0.5f);
  // Averaged gradients are clipped by the norm of the mean: 1.75.
  CHECK((*reduce(world, g, true))[1][0] == Approx(1).epsilon(1e-5));
}

TEST_CASE("releases with wrong loss scaling give the optimizer gradients of the wrong size") {
  // Four accumulation steps, loss scale 1024. Releases 0.16.0 to 0.18.2: gradients are 4 times too
  // large if the engine's all-reduce is off. From 0.18.3 on: 1024 times too small in both stages.
  World world = world_of(iris::network(), 2);
  world.accumulation_steps = 4;
  world.loss_scale = 1024;
  const std::vector<std::vector<float>> g(2, std::vector<float>(world.tensors.elements(), 0.5f));
  const auto seen = [&](LossScaling release, bool engine_allreduce) {
    world.quirks.loss_scaling = release;
    return reduce(world, g, engine_allreduce)->back()[0];
  };
  CHECK(seen(LossScaling::right, true) == 0.5f);
  CHECK(seen(LossScaling::right, false) == 0.5f);
  CHECK(seen(LossScaling::no_accumulation_division, true) == 0.5f);
  CHECK(seen(LossScaling::no_accumulation_division, false) == 2.0f);
  CHECK(seen(LossScaling::no_loss_scale_multiplication, true) == 0.5f / 1024);
  CHECK(seen(LossScaling::no_loss_scale_multiplication, false) == 0.5f / 1024);
  // Clipping follows and hides the first error: the norm becomes 1 for any size.
  world.gradient_clipping = 1;
  const float clipped = seen(LossScaling::right, false);
  CHECK(seen(LossScaling::no_accumulation_division, false) == Approx(clipped).epsilon(1e-5));
}
