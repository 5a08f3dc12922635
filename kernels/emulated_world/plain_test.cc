#include "kernels/emulated_world/plain.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/emulated_world/training.h"

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
