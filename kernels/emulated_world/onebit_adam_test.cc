#include "kernels/emulated_world/onebit_adam.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/emulated_world/plain.h"
#include "kernels/emulated_world/training.h"
#include "kernels/reference/adam.h"
#include "sim/base/error.h"

using namespace lambcast;
using namespace lambcast::emulated;

namespace {

void run(OnebitAdam& o, const iris::Problem& problem, int steps) {
  for (int k = 0; k < steps; ++k) step(o, gradients(problem, o));
}

OnebitAdamOptions quick(int freeze_step) {
  OnebitAdamOptions options;
  options.adam.lr = 0.01;
  options.freeze_step = freeze_step;
  return options;
}

OnebitAdam onebit(int ranks, int freeze_step, Quirks quirks = {}) {
  return onebit_adam(world_of(iris::network(), ranks, quirks), quick(freeze_step));
}

// The second and the last of the network's four tensors never freeze.
World partly_frozen(int ranks, Quirks quirks = {}) {
  World world = world_of(iris::network(), ranks, quirks);
  world.non_freeze = {false, true, false, true};
  return world;
}

}  // namespace

TEST_CASE("1-bit Adam freezes after freeze_step updates, one fewer in DeepSpeed") {
  const iris::Problem problem = iris::network();
  for (const int freeze_step : {1, 2, 5}) {
    OnebitAdam right = onebit(2, freeze_step), theirs = onebit(2, freeze_step, deepspeed_quirks());
    int ours_full = 0, theirs_full = 0;
    for (int k = 0; k < 8; ++k) {
      ours_full += step(right, gradients(problem, right)) == Step::full;
      theirs_full += step(theirs, gradients(problem, theirs)) == Step::full;
    }
    CHECK(ours_full == freeze_step);
    CHECK(theirs_full == std::max(1, freeze_step - 1));
  }
  CHECK_THROWS_WITH(onebit(2, 0), "freeze_step: must be at least 1");
  Quirks first;
  first.dry_run = DryRun::on_first_gradient;
  OnebitAdam fp32 = onebit(2, 5, first);
  CHECK(step(fp32, gradients(problem, fp32)) == Step::dry_run);
  CHECK(fp32.ranks[0].p == problem.initial);
}

TEST_CASE("the momentum of 1-bit Adam takes at most 2 n values per tensor, replicas agree") {
  const iris::Problem problem = iris::network();
  for (const int n : {2, 3, 8, 12, 64}) {
    for (const Quirks& quirks : {Quirks{}, deepspeed_quirks()}) {
      OnebitAdam o = onebit(n, 3, quirks);
      run(o, problem, 6);
      for (const auto& rank : o.ranks) REQUIRE(rank.p == o.ranks[0].p);
      for (std::size_t t = 0; t < problem.tensors.tensors(); ++t) {
        const auto m = problem.tensors.view(std::span<const float>(o.ranks[0].m), t);
        std::vector<float> values(m.begin(), m.end());
        std::sort(values.begin(), values.end());
        values.erase(std::unique(values.begin(), values.end()), values.end());
        CHECK(values.size() <= 2 * static_cast<std::size_t>(n));
      }
    }
  }
}

TEST_CASE("a single rank does not compress: 1-bit Adam is then Adam with a frozen variance") {
  const iris::Problem problem = iris::network();
  OnebitAdam o = onebit(1, 3);
  run(o, problem, 3);
  const auto v = o.ranks[0].v;
  run(o, problem, 5);
  CHECK(o.ranks[0].v == v);
  CHECK(o.errors[0].worker[0] == std::vector<float>(64, 0.0f));
}

TEST_CASE("1-bit Adam with groups that never freeze is Adam without bias correction") {
  const iris::Problem problem = iris::network();
  for (const int n : {1, 2, 3, 6, 8, 12, 64}) {
    World world = world_of(problem, n);
    world.non_freeze.assign(4, true);
    OnebitAdam o = onebit_adam(world, quick(2));
    Adam plain = adam(world, o.options.adam);
    for (int k = 0; k < 6; ++k) {
      step(o, gradients(problem, o));
      step(plain, gradients(problem, plain));
      for (const auto& rank : o.ranks) REQUIRE(rank.p == plain.p);
    }
    CHECK(o.ranks[0].v == plain.v);
  }
}

TEST_CASE("a non_freeze group takes an Adam step on the mean gradient while others compress") {
  const iris::Problem problem = iris::network();
  const TensorLayout& tensors = problem.tensors;
  for (const int n : {1, 2, 3, 6, 8, 12, 64}) {
    World world = partly_frozen(n);
    world.mask.assign(tensors.elements(), 0.0f);  // only for compressed momenta
    OnebitAdam o = onebit_adam(world, quick(3));
    run(o, problem, 5);
    const auto g = gradients(problem, o);
    OnebitAdam::Rank expected = o.ranks[0];
    const AdamOptions& options = o.options.adam;
    reference::adam_step(expected.p, expected.m, expected.v, mean(g), options, 6);
    const auto frozen_v = o.ranks[0].v;
    CHECK(step(o, g) == Step::onebit);
    for (const auto& rank : o.ranks) REQUIRE(rank.p == o.ranks[0].p);
    const auto same = [&](std::vector<float>& a, std::vector<float>& b, std::size_t t) {
      const auto x = tensors.view(std::span(a), t), y = tensors.view(std::span(b), t);
      return std::equal(x.begin(), x.end(), y.begin());
    };
    auto& rank = o.ranks.back();
    auto frozen = frozen_v;
    for (const std::size_t t : {std::size_t{1}, std::size_t{3}}) {
      CHECK(same(rank.p, expected.p, t));
      CHECK(same(rank.m, expected.m, t));
      CHECK(same(rank.v, expected.v, t));
      CHECK_FALSE(same(rank.v, frozen, t));
      for (const float owed : o.errors[t].worker[0]) REQUIRE(owed == 0);
    }
    for (const std::size_t t : {std::size_t{0}, std::size_t{2}}) {
      CHECK(same(rank.v, frozen, t));
      for (const float m : tensors.view(std::span(rank.m), t)) REQUIRE(m == 0);  // masked
    }
  }
}

TEST_CASE("gradients of a non_freeze group are clipped before they are averaged") {
  // Local: rank 0 clips its gradient of norm 3 to 1, rank 1 keeps 0.5; the mean is 0.75. Shared:
  // both are divided by sqrt(9.25 / 2) = 2.1506; the mean is 1.75 / 2.1506 = 0.8137.
  for (const ClipNorm clip : {ClipNorm::local, ClipNorm::shared}) {
    Quirks quirks;
    quirks.clip_norm = clip;
    World world = partly_frozen(2, quirks);
    world.gradient_clipping = 1;
    OnebitAdam o = onebit_adam(world, quick(1));
    std::vector<std::vector<float>> g(2, std::vector<float>(world.tensors.elements()));
    step(o, g);  // nothing moves, and the warm-up ends
    const std::size_t at = world.tensors.offsets[1];
    g[0][at] = 3;
    g[1][at] = 0.5;
    step(o, g);
    const double mean_gradient = clip == ClipNorm::local ? 0.75 : 1.75 / std::sqrt(9.25 / 2);
    CHECK(o.ranks[1].m[at] == Approx(0.1 * mean_gradient).epsilon(1e-5));
  }
}

TEST_CASE("non_freeze must cover every tensor") {
  World world = world_of(iris::network(), 2);
  world.non_freeze = {true};
  CHECK_THROWS_WITH(onebit_adam(world, {}), "non_freeze: does not have one entry per tensor");
}

TEST_CASE("DeepSpeed's dry run moves the moments of a non_freeze group and nothing else") {
  const iris::Problem problem = iris::network();
  Quirks first;
  first.dry_run = DryRun::on_first_gradient;
  World world = partly_frozen(3, first);
  OnebitAdam o = onebit_adam(world, quick(5));
  const auto g = gradients(problem, o);
  CHECK(step(o, g) == Step::dry_run);
  CHECK(o.step == 1);
  const auto averaged = mean(g);
  const TensorLayout& tensors = world.tensors;
  for (std::size_t t = 0; t < 4; ++t) {
    for (std::size_t e = tensors.offsets[t]; e < tensors.offsets[t + 1]; ++e) {
      const float gradient = t % 2 == 1 ? averaged[e] : 0.0f;
      REQUIRE(o.ranks[2].p[e] == world.initial[e]);
      REQUIRE(o.ranks[2].m[e] == Approx(0.1 * gradient).epsilon(1e-6));
      REQUIRE(o.ranks[2].v[e] == Approx(0.001 * gradient * gradient).epsilon(1e-6));
    }
  }
}

TEST_CASE("1-bit Adam has no bias correction, even if it is set") {
  const iris::Problem problem = iris::network();
  OnebitAdamOptions asked = quick(2);
  asked.adam.bias_correction = true;
  OnebitAdam with = onebit_adam(world_of(problem, 2), asked), without = onebit(2, 2);
  run(with, problem, 4);
  run(without, problem, 4);
  CHECK(with.ranks[0].p == without.ranks[0].p);
}

TEST_CASE("a copy of 1-bit Adam resumes exactly; DeepSpeed's checkpoint loses the error feedback") {
  const iris::Problem problem = iris::network();
  OnebitAdam o = onebit(3, 3, deepspeed_quirks());
  run(o, problem, 6);
  OnebitAdam copy = o, loaded = o, raised = o;
  resume_as_deepspeed(loaded);
  CHECK(step(loaded, gradients(problem, loaded)) == Step::onebit);
  run(o, problem, 1);
  run(copy, problem, 1);
  CHECK(copy.ranks[0].p == o.ranks[0].p);
  CHECK(loaded.ranks[0].p != o.ranks[0].p);
  // state.step is 7 after 6 updates. With a freeze at 9, two more updates are in full precision.
  raised.options.freeze_step = 9;
  resume_as_deepspeed(raised);
  CHECK(step(raised, gradients(problem, raised)) == Step::full);
  CHECK(step(raised, gradients(problem, raised)) == Step::full);
  CHECK(step(raised, gradients(problem, raised)) == Step::onebit);
}

TEST_CASE("a resume in fp32 quantises the momenta, and the replicas of 1-bit Adam diverge") {
  const iris::Problem problem = iris::network();
  Quirks fp32;
  fp32.dry_run = DryRun::on_first_gradient;
  OnebitAdam o = onebit(3, 3, fp32);
  run(o, problem, 6);
  const auto before = o.ranks[0];
  resume_as_deepspeed(o);
  CHECK(step(o, gradients(problem, o)) == Step::dry_run);
  CHECK(o.ranks[0].p == before.p);
  CHECK(o.ranks[0].v == before.v);
  CHECK(o.ranks[0].m != before.m);
  CHECK(o.ranks[0].m == o.ranks[2].m);
  // Only the error feedback of the last tensor of a group is dropped; all four tensors are in one
  // group.
  CHECK(o.errors[0].worker[0] != error_feedback(64, 3).worker[0]);
  CHECK(o.errors[3].worker[0] == error_feedback(problem.tensors.size(3), 3).worker[0]);
  // The engine no longer averages, but the optimizer is back in its warm-up branch.
  CHECK(step(o, gradients(problem, o)) == Step::silent);
  CHECK(o.ranks[0].v != o.ranks[1].v);
  CHECK(o.ranks[0].p != o.ranks[1].p);
  CHECK(step(o, gradients(problem, o)) == Step::onebit);
  CHECK(o.ranks[0].p != o.ranks[1].p);
}
