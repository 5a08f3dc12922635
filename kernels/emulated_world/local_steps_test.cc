#include "kernels/emulated_world/local_steps.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/emulated_world/plain.h"
#include "kernels/emulated_world/training.h"
#include "sim/base/error.h"

using namespace lambcast;
using namespace lambcast::emulated;

namespace {
void local_lr(LocalSteps& o, double lr) { o.options.lr = lr; }
void inner_adam_lr(Adam& o, double lr) { o.options.lr = lr; }
}  // namespace

TEST_CASE("local SGD with an average in every step is SGD on the mean gradient") {
  const iris::Problem problem = iris::network();
  LocalSteps o = local_steps(world_of(problem, 3), Inner::sgd, {.lr = 0.1}, 1, {});
  std::vector<float> p = problem.initial;
  for (int k = 0; k < 10; ++k) {
    const auto g = gradients(problem, o);
    const auto average = mean(g);
    CHECK(step(o, g) == Step::full);
    for (std::size_t e = 0; e < p.size(); ++e) {
      p[e] -= 0.1f * average[e];
      REQUIRE(o.ranks[2].p[e] == Approx(p[e]).epsilon(1e-4).margin(1e-6));
    }
  }
  CHECK(o.wire.sent[0] == plain_allreduce_bytes(problem.tensors.elements(), 3, WireFormat::fp32));
}

TEST_CASE("ranks diverge between averages and agree after them") {
  const iris::Problem problem = iris::network();
  LocalSteps o = local_steps(world_of(problem, 4), Inner::adam, {}, 5, {0.7, 0.9, true});
  for (int k = 1; k <= 15; ++k) {
    CHECK(step(o, gradients(problem, o)) == (k % 5 == 0 ? Step::full : Step::silent));
    CHECK((o.ranks[0].p == o.ranks[3].p) == (k % 5 == 0));
  }
  CHECK(o.ranks[0].p == o.anchor);
  CHECK(o.ranks[0].m != o.ranks[3].m);
  CHECK_THROWS_WITH(local_steps(world_of(problem, 4), Inner::adam, {}, 0, {}),
                    "interval: must be at least 1");
}

TEST_CASE("sites sum their gradients in every step and average like ranks") {
  // Six ranks in three sites equal three ranks with the mean gradients of two, up to rounding.
  const iris::Problem problem = iris::network();
  const reference::OuterOptions outer{0.7, 0.9, true};
  LocalSteps sites =
      local_steps(world_of(problem, 6), Inner::adam, {.bias_correction = true}, 4, outer, 2);
  LocalSteps three =
      local_steps(world_of(problem, 3), Inner::adam, {.bias_correction = true}, 4, outer);
  const std::size_t elements = problem.tensors.elements();
  for (int k = 1; k <= 20; ++k) {
    const auto g = gradients(problem, sites);
    std::vector<std::vector<float>> means;
    for (std::size_t s = 0; s < 3; ++s) means.push_back(mean(std::span(g).subspan(2 * s, 2)));
    const Step met = k % 4 == 0 ? Step::full : Step::silent;
    CHECK(step(sites, g) == met);
    CHECK(step(three, means) == met);
    CHECK(sites.ranks[0].p == sites.ranks[1].p);  // both in one site
    CHECK((sites.ranks[1].p == sites.ranks[2].p) == (met == Step::full));
    for (std::size_t e = 0; e < elements; ++e)
      REQUIRE(sites.ranks[4].p[e] == Approx(three.ranks[2].p[e]).epsilon(1e-4).margin(1e-5));
    for (const std::size_t sent : sites.site_wire.sent)
      CHECK(sent == plain_allreduce_bytes(elements, 2, WireFormat::fp32));
  }
  REQUIRE(sites.wire.sent.size() == 6);
  for (const std::size_t sent : sites.wire.sent) CHECK(sent == site_meeting_bytes(elements, 3, 2));
  CHECK(site_meeting_bytes(elements, 3, 1) == plain_allreduce_bytes(elements, 3, WireFormat::fp32));
  CHECK_THROWS_WITH(local_steps(world_of(problem, 6), Inner::adam, {}, 4, {}, 4),
                    "site: 4 does not divide 6 ranks");
}

// With an interval of 8 steps, the averages of three fragments begin at steps 2, 5 and 8, and then
// every 8 steps.
TEST_CASE("fragments are averaged at steps of their own") {
  const iris::Problem problem = iris::network();
  LocalSteps o = streamed_steps(world_of(problem, 3), Inner::adam, {}, 8, {0.7, 0.9, true}, 3, 0);
  const std::size_t elements = problem.tensors.elements();
  for (int k = 1; k <= 24; ++k) {
    const int fragment = k % 8 == 2 ? 1 : k % 8 == 5 ? 2 : k % 8 == 0 ? 0 : -1;
    const bool sends = fragment >= 0;
    CHECK(step(o, gradients(problem, o)) == (sends ? Step::full : Step::silent));
    CHECK(o.ranks[0].p != o.ranks[2].p);
    const std::size_t from = sends ? std::size_t(fragment) * elements / 3 : 0;
    const std::size_t to = sends ? std::size_t(fragment + 1) * elements / 3 : 0;
    for (std::size_t e = from; e < to; ++e) {
      REQUIRE(o.ranks[2].p[e] == o.ranks[0].p[e]);
      REQUIRE(o.anchor[e] == o.ranks[0].p[e]);
    }
    CHECK(o.wire.sent[1] == (sends ? plain_allreduce_bytes(to - from, 3, WireFormat::fp32) : 0));
  }
  CHECK_THROWS_WITH(streamed_steps(world_of(problem, 3), Inner::adam, {}, 8, {}, 9, 0),
                    "fragments: 9 (allowed: 1 to 8)");
  CHECK_THROWS_WITH(streamed_steps(world_of(problem, 3), Inner::adam, {}, 8, {}, 1, 8),
                    "overlap: 8 (allowed: 0 to 7)");
}

// Two ranks move by -0.1 and -0.3 a step. After 4 steps their mean is -0.8. It arrives after the
// fifth, when they are at -0.5 and -1.5.
TEST_CASE("an average that arrives later mixes with the weights of its rank") {
  World world;
  world.tensors.offsets = {0, 1};
  world.ranks = 2;
  world.initial = {0};
  LocalSteps o = streamed_steps(world, Inner::sgd, {.lr = 0.1}, 4, {}, 1, 1);
  for (int k = 1; k <= 5; ++k) {
    const std::vector<std::vector<float>> g{{1}, {3}};
    CHECK(step(o, g) == (k == 4 ? Step::full : Step::silent));
  }
  CHECK(o.anchor[0] == Approx(-0.8));
  CHECK(o.ranks[0].p[0] == Approx(-0.65));
  CHECK(o.ranks[1].p[0] == Approx(-1.15));
}

TEST_CASE("the outer optimizer is momentum on the movement of the replicas") {
  // d = a - mean. u = 0.5 u + d; Nesterov d + 0.5 u. Starting from a = 10, twice, with means 8 and
  // 7.
  std::vector<float> a{10}, u{0}, mean{8};
  const reference::OuterOptions nesterov{0.5, 0.5, true};
  reference::outer_step(a, mean, u, nesterov);  // d 2, u 2, step 3
  CHECK(a[0] == 8.5f);
  mean[0] = 7;
  reference::outer_step(a, mean, u, nesterov);  // d 1.5, u 2.5, step 2.75
  CHECK(u[0] == 2.5f);
  CHECK(a[0] == 7.125f);
  reference::outer_step(a, mean, u, {0.5, 0.5, false});  // d 0.125, u 1.375
  CHECK(a[0] == 7.125f - 0.6875f);
}

TEST_CASE(
    "local steps and DiLoCo learn as well as synchronous Adam, with a tenth of the averages") {
  const iris::Problem problem = iris::network();
  Adam plain = adam(world_of(problem, 6), {.bias_correction = true});
  const double reached = train(problem, plain, 600, 0.01, inner_adam_lr);
  LocalSteps local =
      local_steps(world_of(problem, 6), Inner::adam, {.bias_correction = true}, 10, {});
  const double local_loss = train(problem, local, 600, 0.01, local_lr);
  LocalSteps diloco = local_steps(world_of(problem, 6), Inner::adam, {.bias_correction = true}, 10,
                                  {0.7, 0.9, true});
  const double diloco_loss = train(problem, diloco, 600, 0.01, local_lr);
  LocalSteps streamed = streamed_steps(world_of(problem, 6), Inner::adam, {.bias_correction = true},
                                       10, {0.7, 0.9, true}, 3, 2);
  const double streamed_loss = train(problem, streamed, 600, 0.01, local_lr);
  const double start = problem.loss(problem.initial, 0, 1, {});
  CHECK(reached < 0.06 * start);
  CHECK(local_loss < 0.06 * start);
  CHECK(diloco_loss < 0.06 * start);
  CHECK(streamed_loss < 0.06 * start);
}

TEST_CASE(
    "steps with neighbours: the mean of the replicas takes the mean step, and they stay close") {
  const iris::Problem problem = iris::network();
  for (const Graph graph : {Graph::ring, Graph::one_peer_exponential}) {
    LocalSteps o = neighbour_steps(world_of(problem, 8), Inner::sgd, {.lr = 0.1}, graph);
    const auto replicas = [&] {
      std::vector<std::vector<float>> all;
      for (const auto& rank : o.ranks) all.push_back(rank.p);
      return mean(all);
    };
    for (int k = 0; k < 20; ++k) {
      const auto g = gradients(problem, o);
      const auto before = replicas(), average = mean(g);
      CHECK(step(o, g) == Step::full);
      const auto after = replicas();
      for (std::size_t e = 0; e < after.size(); ++e)
        REQUIRE(after[e] == Approx(before[e] - 0.1f * average[e]).epsilon(1e-4).margin(1e-6));
    }
    CHECK(o.ranks[0].p != o.ranks[4].p);
    CHECK(o.wire.sent[0] ==
          static_cast<std::size_t>(neighbours(graph, 8)) * 4 * problem.tensors.elements());
  }
  // Two ranks are each other's only neighbours, so they agree: local SGD that averages in every
  // step.
  LocalSteps two = neighbour_steps(world_of(problem, 2), Inner::adam, {}, Graph::ring);
  LocalSteps all = local_steps(world_of(problem, 2), Inner::adam, {}, 1, {});
  for (int k = 0; k < 10; ++k) {
    step(two, gradients(problem, two));
    step(all, gradients(problem, all));
  }
  CHECK(two.ranks[0].p == two.ranks[1].p);
  for (std::size_t e = 0; e < two.ranks[0].p.size(); ++e)
    REQUIRE(two.ranks[0].p[e] == Approx(all.ranks[0].p[e]).epsilon(1e-5).margin(1e-6));
}

TEST_CASE(
    "momentum with neighbours: the mean of the replicas takes the momentum steps of the mean") {
  const iris::Problem problem = iris::network();
  for (const Inner inner : {Inner::momentum, Inner::decentlam}) {
    LocalSteps o = neighbour_steps(world_of(problem, 8), inner, {.lr = 0.05, .beta1 = 0.8},
                                   Graph::one_peer_exponential);
    std::vector<float> p = problem.initial, m(p.size());
    for (int k = 0; k < 20; ++k) {
      const auto g = gradients(problem, o);
      const auto average = mean(g);
      CHECK(step(o, g) == Step::full);
      std::vector<std::vector<float>> replicas;
      for (const auto& rank : o.ranks) replicas.push_back(rank.p);
      const auto reached = mean(replicas);
      for (std::size_t e = 0; e < p.size(); ++e) {
        m[e] = 0.8f * m[e] + average[e];
        p[e] -= 0.05f * m[e];
        REQUIRE(reached[e] == Approx(p[e]).epsilon(1e-3).margin(1e-5));
      }
    }
    CHECK(o.ranks[0].p != o.ranks[4].p);
    CHECK(o.wire.sent[0] == 4 * problem.tensors.elements());
  }
  CHECK_THROWS_WITH(local_steps(world_of(problem, 4), Inner::decentlam, {}, 1, {}),
                    Catch::Contains("decentlam needs neighbours"));
}

// Rank i has the gradient p - i: the optimum of all is 3.5, which is no rank's own.
TEST_CASE(
    "momentum with neighbours: DmSGD ends farther from the optimum than SGD, DecentLaM does not") {
  const auto distance = [](Inner inner, double beta1) {
    World world;
    world.tensors.offsets = {0, 1};
    world.ranks = 8;
    world.initial = {3.5f};
    LocalSteps o = neighbour_steps(world, inner, {.lr = 0.01, .beta1 = beta1}, Graph::ring);
    for (int k = 0; k < 3000; ++k) {
      std::vector<std::vector<float>> g;
      for (std::size_t r = 0; r < 8; ++r) g.push_back({o.ranks[r].p[0] - static_cast<float>(r)});
      step(o, g);
    }
    double largest = 0;
    for (const auto& rank : o.ranks) largest = std::max(largest, std::fabs(rank.p[0] - 3.5));
    return largest;
  };
  const double sgd = distance(Inner::sgd, 0.9);
  CHECK(sgd > 0.01);
  CHECK(distance(Inner::momentum, 0) == Approx(sgd).epsilon(1e-3));
  CHECK(distance(Inner::decentlam, 0.9) == Approx(sgd).epsilon(0.01));
  // Steps are longer by 1 / (1 - beta1), and so is the distance.
  CHECK(distance(Inner::momentum, 0.9) > 5 * sgd);
}

TEST_CASE("with neighbours Adam learns as well as synchronous Adam") {
  const iris::Problem problem = iris::network();
  const double start = problem.loss(problem.initial, 0, 1, {});
  for (const Graph graph : {Graph::ring, Graph::one_peer_exponential}) {
    LocalSteps o =
        neighbour_steps(world_of(problem, 8), Inner::adam, {.bias_correction = true}, graph);
    CHECK(train(problem, o, 600, 0.01, local_lr) < 0.06 * start);
  }
}
