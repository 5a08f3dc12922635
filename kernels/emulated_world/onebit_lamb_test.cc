#include "kernels/emulated_world/onebit_lamb.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "kernels/emulated_world/plain.h"
#include "kernels/emulated_world/training.h"
#include "sim/base/error.h"

using namespace lambcast;
using namespace lambcast::emulated;

namespace {

// Returns the number of `steps` of this kind.
int count(std::span<const Step> steps, Step kind) {
  return static_cast<int>(std::count(steps.begin(), steps.end(), kind));
}

std::vector<Step> run(OnebitLamb& o, const iris::Problem& problem, int steps) {
  std::vector<Step> did;
  for (int k = 0; k < steps; ++k) did.push_back(step(o, gradients(problem, o)));
  return did;
}

OnebitLamb make(int ranks, int freeze_step, Quirks quirks = {}) {
  OnebitLambOptions options;
  options.lamb.lr = 0.01;
  options.freeze_step = freeze_step;
  return onebit_lamb(world_of(iris::network(), ranks, quirks), options);
}

bool replicas_agree(const OnebitLamb& o) {
  return std::all_of(o.ranks.begin(), o.ranks.end(),
                     [&](const auto& rank) { return rank.p == o.ranks[0].p; });
}

}  // namespace

TEST_CASE("1-bit LAMB is LAMB until the freeze") {
  const iris::Problem problem = iris::network();
  OnebitLamb compressed = make(3, 20);
  Lamb plain = lamb(world_of(problem, 3), compressed.options.lamb);
  for (int k = 0; k < 20; ++k) {
    CHECK(step(compressed, gradients(problem, compressed)) == Step::full);
    step(plain, gradients(problem, plain));
    REQUIRE(compressed.ranks[0].p == plain.p);
  }
  CHECK(step(compressed, gradients(problem, compressed)) == Step::onebit);
}

TEST_CASE("freeze_step counts warm-up updates, except for DeepSpeed's dry run") {
  const iris::Problem problem = iris::network();
  Quirks dry = {}, first = {};
  dry.dry_run = DryRun::at_construction;
  first.dry_run = DryRun::on_first_gradient;
  for (const int freeze_step : {1, 2, 3, 10}) {
    OnebitLamb right = make(2, freeze_step), fp16 = make(2, freeze_step, dry);
    OnebitLamb fp32 = make(2, freeze_step, first);
    CHECK(count(run(right, problem, 12), Step::full) == freeze_step);
    // state.step starts at 1: F - 1 updates, and one for F = 0, 1, 2 alike.
    CHECK(count(run(fp16, problem, 12), Step::full) == std::max(1, freeze_step - 1));
    const auto did = run(fp32, problem, 12);
    CHECK(did[0] == Step::dry_run);
    CHECK(count(did, Step::full) == std::max(1, freeze_step - 1));
  }
  OnebitLamb zero = make(2, 0, dry);
  CHECK(count(run(zero, problem, 12), Step::full) == 1);
  CHECK_THROWS_WITH(make(2, 0), "freeze_step: must be at least 1");
  CHECK_THROWS_WITH(make(0, 1), "ranks: must be at least 1");
}

TEST_CASE("a world with weights or a mask of the wrong size is rejected") {
  World world = world_of(iris::network(), 2);
  world.mask.assign(3, 1.0f);
  CHECK_THROWS_WITH(onebit_lamb(world, {}), "mask: does not have the size of the tensors");
  world.mask.clear();
  world.initial.pop_back();
  CHECK_THROWS_WITH(onebit_lamb(world, {}), "initial: does not have the size of the tensors");
}

TEST_CASE("the fresh variance starts from the frozen one, except for F <= 1 in DeepSpeed") {
  const iris::Problem problem = iris::network();
  for (const int freeze_step : {1, 2, 5}) {
    OnebitLamb right = make(2, freeze_step);
    OnebitLamb theirs = make(2, freeze_step, deepspeed_quirks());
    while (!right.frozen) step(right, gradients(problem, right));
    while (!theirs.frozen) step(theirs, gradients(problem, theirs));
    CHECK(right.ranks[0].fresh_v == right.ranks[0].v);
    // state.step is 2 after the first update, so it never equals 1.
    const std::vector<float> zero(problem.tensors.elements());
    CHECK(theirs.ranks[0].fresh_v == (freeze_step == 1 ? zero : theirs.ranks[0].v));
  }
}

TEST_CASE("with one warm-up step DeepSpeed's frozen coefficient is ten times too small") {
  const iris::Problem problem = iris::network();
  Quirks from_zero;
  from_zero.coefficient_average = CoefficientAverage::from_zero;
  OnebitLamb right = make(2, 1), theirs = make(2, 1, from_zero);
  run(right, problem, 1);
  run(theirs, problem, 1);
  for (std::size_t t = 0; t < problem.tensors.tensors(); ++t) {
    const float ours =
        frozen_coefficient(right.ranks[0].running[t], CoefficientAverage::bias_corrected);
    CHECK(ours ==
          Approx(10 * frozen_coefficient(theirs.ranks[0].running[t], CoefficientAverage::from_zero))
              .epsilon(1e-5));
  }
}

TEST_CASE("replicas stay bitwise equal through both stages, with and without quirks") {
  const iris::Problem problem = iris::network();
  for (const int n : {1, 2, 3, 6, 8, 12, 64}) {
    for (const Quirks& quirks : {Quirks{}, deepspeed_quirks()}) {
      OnebitLamb o = make(n, 3, quirks);
      const auto did = run(o, problem, 8);
      CHECK(count(did, Step::onebit) == (quirks.dry_run == DryRun::none ? 5 : 6));
      CHECK(replicas_agree(o));
      CHECK(o.scales.worker.size() == (n == 1 ? 0u : static_cast<std::size_t>(n)));
    }
  }
}

TEST_CASE("the padding of 1-bit LAMB feeds back in DeepSpeed and is zero without the quirk") {
  // 131 parameters on 8 ranks: 61 elements of padding in 192.
  const iris::Problem problem = iris::network();
  Quirks persistent;
  persistent.padding = Padding::counted;
  persistent.persistent_tail = true;
  OnebitLamb theirs = make(8, 3, persistent), ours = make(8, 3);
  run(theirs, problem, 3);
  CHECK(theirs.ranks[0].tail == std::vector<float>(61, 0.0f));
  run(theirs, problem, 1);
  run(ours, problem, 4);
  // Right after the first call every padding element holds +- a server scale.
  for (const float x : theirs.ranks[0].tail) {
    CHECK(std::count(theirs.scales.server.begin(), theirs.scales.server.end(), std::fabs(x)) > 0);
  }
  const std::vector<float> before = theirs.ranks[0].tail;
  run(theirs, problem, 20);
  CHECK(theirs.ranks[0].tail != before);
  CHECK(ours.ranks[0].tail.empty());
  CHECK(ours.errors.worker[0].back() == 0);
}

TEST_CASE("the gradient is reconstructed from the averaged momentum on every rank") {
  // All ranks have the same m before and after, so vf must agree although gradients differ.
  const iris::Problem problem = iris::network();
  OnebitLamb o = make(3, 2);
  run(o, problem, 6);
  CHECK(o.ranks[0].fresh_v == o.ranks[2].fresh_v);
  CHECK(o.ranks[0].last_factor == o.ranks[2].last_factor);
  CHECK(o.ranks[0].fresh_v != o.ranks[0].v);
}

TEST_CASE("overflow on one rank skips the step on all; unchecked, it makes all values NaN") {
  const iris::Problem problem = iris::network();
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const int warm : {1, 5}) {  // overflow in warm-up, and in the compression stage
      Quirks unchecked;
      unchecked.overflow_poisons = true;
      OnebitLamb checked = make(3, 3), poisoned = make(3, 3, unchecked);
      run(checked, problem, warm);
      run(poisoned, problem, warm);
      auto g = gradients(problem, checked);
      g[1][7] = bad;
      const auto before = checked.ranks[0].p;
      const int step_before = checked.step;
      CHECK(step(checked, g) == Step::skipped);
      CHECK(checked.ranks[0].p == before);
      CHECK(checked.step == step_before);
      CHECK(step(poisoned, g) != Step::skipped);
      // In warm-up the element's tensor is lost through its norm; in compression all tensors are.
      for (const auto& rank : poisoned.ranks) {
        const auto lost =
            std::count_if(rank.p.begin(), rank.p.end(), [](float x) { return !std::isfinite(x); });
        CHECK(lost == (warm < 3 ? 64 : 131));
      }
    }
  }
}

TEST_CASE("a masked element never moves") {
  World world = world_of(iris::network(), 4);
  world.mask.assign(world.tensors.elements(), 1.0f);
  world.mask[10] = 0;
  OnebitLambOptions options;
  options.freeze_step = 2;
  OnebitLamb o = onebit_lamb(world, options);
  const iris::Problem problem = iris::network();
  run(o, problem, 2);
  const float at_freeze = o.ranks[0].p[10];
  run(o, problem, 10);
  CHECK(o.ranks[0].p[10] == at_freeze);
  CHECK(o.ranks[0].p[11] != Approx(world.initial[11]).epsilon(1e-6));
}

TEST_CASE("a copy resumes exactly; DeepSpeed's checkpoint loses the error feedback") {
  const iris::Problem problem = iris::network();
  OnebitLamb o = make(3, 3, deepspeed_quirks());
  run(o, problem, 10);
  OnebitLamb copy = o, loaded = o;
  resume_as_deepspeed(loaded);
  CHECK(run(loaded, problem, 1)[0] == Step::onebit);  // after the freeze: continues compressing
  run(o, problem, 1);
  run(copy, problem, 1);
  CHECK(copy.ranks[0].p == o.ranks[0].p);
  CHECK(loaded.ranks[0].p != o.ranks[0].p);
  // A raised freeze_step returns it to warm-up with new coefficients.
  loaded = o;
  loaded.options.freeze_step = 20;
  resume_as_deepspeed(loaded);
  CHECK(loaded.ranks[0].running[0].average == 0);
  CHECK(loaded.ranks[0].last_factor[0] == 1);
  CHECK(loaded.ranks[0].scaling.empty());
  CHECK(run(loaded, problem, 1)[0] == Step::full);
}

TEST_CASE("a resume of 1-bit LAMB below its step continues with compression") {
  // Saved in warm-up after 5 updates (state.step 6), loaded with freeze_step 4: frozen at once, and
  // the fresh variance was never copied.
  const iris::Problem problem = iris::network();
  OnebitLamb o = make(3, 20, deepspeed_quirks());
  run(o, problem, 5);
  o.options.freeze_step = 4;
  resume_as_deepspeed(o);
  CHECK(o.ranks[0].fresh_v == std::vector<float>(problem.tensors.elements()));
  CHECK(run(o, problem, 1)[0] == Step::onebit);
  CHECK(replicas_agree(o));
}

TEST_CASE("a resume in fp32 quantises the unscaled momenta, and the replicas diverge") {
  const iris::Problem problem = iris::network();
  Quirks fp32 = deepspeed_quirks();
  fp32.dry_run = DryRun::on_first_gradient;
  OnebitLamb o = make(3, 3, fp32);
  run(o, problem, 8);
  REQUIRE(replicas_agree(o));
  const auto before = o.ranks[0];
  const int step_before = o.step;
  resume_as_deepspeed(o);
  CHECK(run(o, problem, 1)[0] == Step::dry_run);
  CHECK(o.step == step_before + 1);
  CHECK(o.ranks[0].p == before.p);
  CHECK(o.ranks[0].v == before.v);
  // Every momentum is plus or minus one of the server scales, since no scaling was undone.
  for (const float m : o.ranks[0].m) {
    REQUIRE(std::count(o.scales.server.begin(), o.scales.server.end(), std::fabs(m)) > 0);
  }
  CHECK(o.errors.worker[0] == std::vector<float>(o.errors.layout.padded));
  CHECK(run(o, problem, 1)[0] == Step::silent);  // warm-up on local gradients
  CHECK(o.ranks[0].v != o.ranks[1].v);
  CHECK_FALSE(replicas_agree(o));
  CHECK(run(o, problem, 1)[0] == Step::onebit);
  CHECK_FALSE(replicas_agree(o));
}

TEST_CASE("an empty tensor is valid here, and fails the first compressed step in DeepSpeed") {
  const std::vector<std::size_t> sizes{3, 0, 5};
  for (const bool poisons : {false, true}) {
    World world;
    world.tensors = tensor_layout(sizes);
    world.ranks = 2;
    world.initial.assign(8, 1.0f);
    world.quirks.empty_tensor_poisons = poisons;
    OnebitLambOptions options;
    options.freeze_step = 1;
    OnebitLamb o = onebit_lamb(world, options);
    const std::vector<std::vector<float>> g(2, std::vector<float>(8, 0.5f));
    step(o, g);
    CHECK(std::isfinite(o.ranks[1].p[7]));
    if (poisons) {
      CHECK_THROWS_WITH(step(o, g), Catch::Contains("tensor 1 has no elements"));
    } else {
      CHECK(step(o, g) == Step::onebit);
      CHECK(std::isfinite(o.ranks[1].p[7]));
    }
  }
}

TEST_CASE("parameter groups of 1-bit LAMB apply in both stages") {
  // The second tensor hardly moves, since its learning rate is almost zero. The third has the
  // weight decay that the comparison sets for all.
  const iris::Problem problem = iris::network();
  const TensorLayout& tensors = problem.tensors;
  World world = world_of(problem, 3);
  OnebitLambOptions options;
  options.lamb.lr = 0.01;
  options.freeze_step = 3;
  OnebitLamb plain = onebit_lamb(world, options);
  world.group_of = {{1, 0.0}, {1e-30, 0.0}, {1, 0.5}, {1, 0.0}};
  OnebitLamb grouped = onebit_lamb(world, options);
  options.lamb.weight_decay = 0.5;
  world.group_of.clear();
  OnebitLamb decayed = onebit_lamb(world, options);
  const auto same = [&](const OnebitLamb& a, const OnebitLamb& b, std::size_t t) {
    const auto x = tensors.view(std::span(a.ranks[0].p), t),
               y = tensors.view(std::span(b.ranks[0].p), t);
    return std::equal(x.begin(), x.end(), y.begin());
  };
  for (int k = 0; k < 6; ++k) {
    const auto g = gradients(problem, plain);  // the same for all three
    for (OnebitLamb* o : {&plain, &grouped, &decayed}) step(*o, g);
    CHECK(same(grouped, plain, 0));
    CHECK(tensors.view(std::span(grouped.ranks[0].p), 1)[0] ==
          tensors.view(std::span(problem.initial), 1)[0]);
    CHECK(same(grouped, decayed, 2));
    CHECK_FALSE(same(grouped, plain, 2));
    CHECK(same(grouped, plain, 3));
  }
  CHECK(grouped.frozen);
}

TEST_CASE("tensors of 1-bit LAMB that never freeze continue with LAMB on the mean gradient") {
  const iris::Problem problem = iris::network();
  const TensorLayout& tensors = problem.tensors;
  for (const int n : {1, 2, 3, 8}) {
    World world = world_of(problem, n);
    world.non_freeze = {false, false, true, true};
    world.group_of.assign(4, {1, 0.01});
    OnebitLambOptions options;
    options.lamb.lr = 0.01;
    options.freeze_step = 2;
    OnebitLamb o = onebit_lamb(world, options);
    Lamb lamb = emulated::lamb(world, options.lamb);
    for (int k = 0; k < 6; ++k) {
      const auto g = gradients(problem, o);  // the same for both
      step(lamb, g);
      CHECK(step(o, g) == (k < 2 ? Step::full : Step::onebit));
      for (const auto& rank : o.ranks) {
        for (std::size_t e = tensors.offsets[2]; e < tensors.elements(); ++e) {
          REQUIRE(rank.p[e] == lamb.p[e]);
          REQUIRE(rank.v[e] == lamb.v[e]);
        }
      }
      CHECK(replicas_agree(o));
    }
    CHECK(o.errors.layout.elements == tensors.offsets[2]);
  }
  World world = world_of(problem, 2);
  world.non_freeze = {true, false, true, true};
  CHECK_THROWS_WITH(onebit_lamb(world, {}), "non_freeze: must name the last tensors of 1-bit LAMB");
  world.non_freeze = {false, false, true, true};
  world.quirks = deepspeed_quirks();
  CHECK_THROWS_WITH(onebit_lamb(world, {}), "non_freeze: does not go with padding that persists");
}
