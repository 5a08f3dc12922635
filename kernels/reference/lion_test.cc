#include "kernels/reference/lion.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <vector>

using namespace lambcast;
using namespace lambcast::reference;
using Values = std::vector<float>;

TEST_CASE("Lion moves every element by lr against the sign of its mixed momentum") {
  // c = 0.9 m + 0.1 g: 0.01, -0.0001, and 0.9 - 1 = -0.1, with a gradient that outweighs m.
  Values p{1, 1, 1}, m{0, 0, 1};
  lion_step(p, m, Values{0.1F, -1e-3F, -10}, {.lr = 0.25});
  CHECK(p == Values{0.75F, 1.25F, 1.25F});
  CHECK(m[0] == Approx(0.01 * 0.1));
  CHECK(m[2] == Approx(0.99 - 0.1));
}

TEST_CASE("Lion's decay is decoupled; without momentum and gradient only decay moves weights") {
  Values p{2}, m{0};
  lion_step(p, m, Values{0}, {.lr = 0.1, .weight_decay = 0.5});
  CHECK(p[0] == Approx(2 - 0.1 * 0.5 * 2));
  CHECK(m[0] == 0);
}

TEST_CASE("Lion keeps the slow momentum: it decays with b2, and updates mix it with b1") {
  // After k gradients of 1 the momentum is 1 - b2^k; a gradient of -4 then changes the sign of c if
  // b1 (1 - b2^k) < 4 (1 - b1).
  const LionOptions options{.lr = 1, .beta1 = 0.9, .beta2 = 0.5};
  Values p{0}, m{0};
  for (int k = 0; k < 2; ++k) lion_step(p, m, Values{1}, options);
  CHECK(m[0] == Approx(1 - std::pow(0.5, 2)));
  lion_step(p, m, Values{-4}, options);  // 0.9 x 0.75 = 0.675 against 0.4
  CHECK(p[0] == -3);
  m[0] = 0.4F;  // 0.36 against 0.4
  lion_step(p, m, Values{-4}, options);
  CHECK(p[0] == -2);
}

TEST_CASE("Lion reaches the minimum of a quadratic to within lr") {
  Values p{3, -5}, m{0, 0};
  for (int step = 0; step < 200; ++step)
    lion_step(p, m, Values{p[0], 10 * p[1]}, {.lr = 0.05, .beta2 = 0.9});
  for (const float x : p) CHECK(std::abs(x) < 0.5);
}
