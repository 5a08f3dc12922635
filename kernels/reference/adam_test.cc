#include "kernels/reference/adam.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <span>
#include <vector>

using namespace lambcast;
using namespace lambcast::reference;
using Values = std::vector<float>;

TEST_CASE("the first bias-corrected Adam step has length lr for any gradient") {
  // m = (1-b1) g and v = (1-b2) g^2; corrected they are g and g^2, so upd = sgn(g) up to eps.
  Values p{1, 1}, m{0, 0}, v{0, 0};
  adam_step(p, m, v, Values{100, -1e-3f}, {.lr = 0.1, .bias_correction = true}, 1);
  CHECK(p[0] == Approx(0.9).epsilon(1e-5));
  CHECK(p[1] == Approx(1.1).epsilon(1e-4));
}

TEST_CASE("without bias correction the first step is (1-b1)/sqrt(1-b2) times lr") {
  // 0.1 / sqrt(0.001) = 3.1623
  Values p{0}, m{0}, v{0};
  adam_step(p, m, v, Values{2}, {.lr = 0.1}, 1);
  CHECK(p[0] == Approx(-0.1 * 0.1 / std::sqrt(0.001)).epsilon(1e-5));
}

TEST_CASE("weight decay is decoupled: it moves p with no gradient and leaves the moments alone") {
  Values p{2}, m{0}, v{0};
  adam_step(p, m, v, Values{0}, {.lr = 0.1, .weight_decay = 0.5}, 1);
  CHECK(p[0] == Approx(2 - 0.1 * 0.5 * 2));
  CHECK(m[0] == 0);
  CHECK(v[0] == 0);
}

TEST_CASE("the compression stage moves p with a frozen variance") {
  Values p{0, 1}, m{1, -2};
  const Values v{4, 16};
  adam_apply(p, m, v, {.lr = 0.1, .eps = 1});
  CHECK(p[0] == Approx(-0.1 / 3));  // m / (sqrt(v) + eps) = 1 / 3
  CHECK(p[1] == Approx(1 + 0.2 / 5));
}

TEST_CASE("0/1 Adam does not change the variance in a 1-bit step") {
  Values p{0}, m{1};
  const Values v{4};
  zero_one_onebit_step(p, m, v, Values{3}, {.lr = 0.1, .beta1 = 0.5, .eps = 1});
  CHECK(m[0] == 2);  // 0.5 * 1 + 0.5 * 3
  CHECK(p[0] == Approx(-0.1 * 2 / 3));
}

TEST_CASE("weights without a gradient move only by decay; DeepSpeed divides a scale by eps") {
  const AdamOptions options{.lr = 0.5, .beta1 = 0.5, .eps = 1e-8, .weight_decay = 0.25};
  const Values v{0}, one{1};  // the one-bit average of nothing
  Values p{2}, m{1}, u{0};
  adam_apply(p, m, v, options);
  CHECK(p[0] == 1.75f);  // 2 - 0.5 * 0.25 * 2
  CHECK(m[0] == 0);
  zero_one_onebit_step(p, m, v, one, options);
  CHECK(p[0] == 1.75f * 0.875f);
  zero_one_local_step(p, m, v, u, one, options);
  const float decayed = p[0];
  CHECK(decayed == Approx(1.75 * 0.875 * 0.875));
  CHECK(u[0] == Approx(decayed - 1.75 * 0.875));
  zero_one_sync_begin(p, v, u, options);
  u[0] = 1;
  zero_one_sync_end(p, m, v, u, 0.5, options);
  CHECK(p[0] == decayed);
  CHECK(m[0] == 0);

  Values theirs{2}, momentum{1};
  adam_apply(theirs, momentum, v, options, Unseen::move);
  CHECK(theirs[0] == Approx(-0.5e8).epsilon(1e-6));
  CHECK(momentum[0] == 1);
  for (const Unseen unseen : {Unseen::stay, Unseen::move}) {
    Values seen{2}, moving{1};
    adam_apply(seen, moving, Values{1e-30f}, options, unseen);
    CHECK(seen[0] < -1e6f);  // even a small variance counts as seen
  }
}

TEST_CASE("the synchronisation of 0/1 Adam on one rank is exact") {
  // If the averaged u equals the local u, p returns to its value after the local steps, and the
  // momentum becomes the mean update without preconditioning: -u (sqrt(v) + eps) / lrs.
  const AdamOptions options{.lr = 0.1, .beta1 = 0.5, .eps = 1};
  Values p{1}, m{1}, u{0};
  const Values v{4};
  double lrs = 0;
  for (int step = 0; step < 2; ++step) {
    zero_one_local_step(p, m, v, u, Values{1}, options);
    lrs += options.lr;
  }
  const float moved = p[0];
  CHECK(u[0] == Approx(moved - 1).epsilon(1e-6));  // u is the sum of the updates
  zero_one_sync_begin(p, v, u, options);
  CHECK(p[0] == Approx(1).epsilon(1e-6));  // rewound
  zero_one_sync_end(p, m, v, u, lrs, options);
  CHECK(p[0] == Approx(moved).epsilon(1e-6));
  CHECK(m[0] == Approx(1).epsilon(1e-6));  // the momentum was always 1
  CHECK(u[0] == 0);
}

TEST_CASE("a step of a shard does not change the elements after it") {
  // Three elements of four; the fourth must not change.
  const AdamOptions options{.lr = 0.1, .beta1 = 0.5, .eps = 1};
  Values p(4, 1), m(4, 2), v(4, 3), u(4, 4);
  const Values g(4, 5);
  const auto shard = [](Values& values) { return std::span(values).first(3); };
  const auto gradients = std::span(g).first(3);
  const auto behind = [&] { return Values{p[3], m[3], v[3], u[3]}; };
  const Values before = behind();
  adam_step(shard(p), shard(m), shard(v), gradients, options, 1);
  CHECK(behind() == before);
  adam_apply(shard(p), shard(m), shard(v), options);
  CHECK(behind() == before);
  zero_one_onebit_step(shard(p), shard(m), shard(v), gradients, options);
  CHECK(behind() == before);
  zero_one_local_step(shard(p), shard(m), shard(v), shard(u), gradients, options);
  CHECK(behind() == before);
  zero_one_sync_begin(shard(p), shard(v), shard(u), options);
  CHECK(behind() == before);
  zero_one_sync_end(shard(p), shard(m), shard(v), shard(u), 0.1, options);
  CHECK(behind() == before);
}
