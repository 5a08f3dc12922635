#include "kernels/emulated_world/zero_one_adam.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/emulated_world/training.h"
#include "sim/base/error.h"

using namespace lambcast;
using namespace lambcast::emulated;

namespace {

void run(ZeroOneAdam& o, const iris::Problem& problem, int steps) {
  for (int k = 0; k < steps; ++k) step(o, gradients(problem, o));
}

ZeroOneAdam zero_one(int ranks, ZeroOneAdamOptions options, Quirks quirks = {}) {
  return zero_one_adam(world_of(iris::network(), ranks, quirks), options);
}

struct Counts {
  int full = 0, onebit = 0, silent = 0;
};

// Replays only the policy over real steps; with the dry run, real step k has number k + 1.
Counts replay(int steps, const ZeroOneAdamOptions& options, bool dry_run) {
  ZeroOnePolicy policy;
  Counts counts;
  for (int k = 1; k <= steps; ++k) {
    const int step = k + (dry_run ? 1 : 0);
    const Step kind = kind_of(policy, step);
    ++(kind == Step::full ? counts.full : kind == Step::onebit ? counts.onebit : counts.silent);
    advance(policy, step, k, options);
  }
  return counts;
}

}  // namespace

TEST_CASE("the policy of 0/1 Adam gives the published kinds of steps") {
  // Replays of the bing_bert configuration, of the tutorial's, and of one without a freeze.
  const Counts bert = replay(150000, {.adam = {}, .var_freeze_step = 12500}, true);
  CHECK(bert.full == 153);
  CHECK(bert.onebit == 74043);
  CHECK(bert.silent == 75804);
  const Counts tutorial =
      replay(100000, {.adam = {}, .var_freeze_step = 1000, .local_step_scaler = 1000}, true);
  CHECK(tutorial.full == 96);
  CHECK(tutorial.onebit == 8717);
  CHECK(tutorial.silent == 91187);
  const Counts never = replay(150000, {.adam = {}, .var_freeze_step = 1000000}, true);
  CHECK(never.full == 211);
  CHECK(never.onebit == 149789);
  CHECK(never.silent == 0);
  // Without the dry run the intervals begin one step later, and no step is lost.
  const Counts right = replay(150000, {.adam = {}, .var_freeze_step = 12500}, false);
  CHECK(right.full + right.onebit + right.silent == 150000);
}

TEST_CASE("0/1 Adam's replicas diverge in silent steps and agree again after the synchronisation") {
  const iris::Problem problem = iris::network();
  ZeroOneAdamOptions options;
  options.adam.lr = 1e-3;
  options.var_freeze_step = 10;
  options.var_update_scaler = 2;
  options.local_step_scaler = 4;
  options.local_step_clipper = 4;
  ZeroOneAdam o = zero_one(4, options);
  int silent = 0, met = 0;
  for (int k = 0; k < 40; ++k) {
    const Step kind = step(o, gradients(problem, o));
    float apart = 0;
    for (std::size_t e = 0; e < problem.initial.size(); ++e) {
      apart = std::max(apart, std::fabs(o.ranks[3].p[e] - o.ranks[0].p[e]));
    }
    if (kind == Step::silent) {
      ++silent;
      CHECK(apart > 1e-4f);
    } else {
      // Rewinding a few steps leaves rounding errors of weights below 1: some 6e-8 each, growing
      // slowly.
      CHECK(apart < 1e-5f);
      met += o.policy.frozen;
    }
  }
  CHECK(silent > 10);
  CHECK(met > 5);
}

TEST_CASE("one rank of DeepSpeed's 0/1 Adam skips its momentum between variance updates") {
  const iris::Problem problem = iris::network();
  ZeroOneAdamOptions options;
  options.var_update_scaler = 1;  // the interval doubles at every full step
  Quirks skip;
  skip.lone_rank_keeps_momentum = true;
  ZeroOneAdam right = zero_one(1, options), theirs = zero_one(1, options, skip);
  // Step 1 is full and makes the interval 2, step 2 is full and makes it 4, step 3 is 1-bit.
  run(right, problem, 2);
  run(theirs, problem, 2);
  const auto before = theirs.ranks[0].m;
  CHECK(step(right, gradients(problem, right)) == Step::onebit);
  CHECK(step(theirs, gradients(problem, theirs)) == Step::onebit);
  CHECK(theirs.ranks[0].m == before);
  CHECK(right.ranks[0].m != before);
}

TEST_CASE("DeepSpeed's checkpoint of 0/1 Adam restarts the policy with one local variance update") {
  const iris::Problem problem = iris::network();
  ZeroOneAdamOptions options;
  options.var_freeze_step = 4;
  options.local_step_scaler = 2;
  ZeroOneAdam o = zero_one(2, options, deepspeed_quirks());
  run(o, problem, 16);
  CHECK(o.policy.local_interval == 16);
  CHECK(o.step % 16 == 1);  // 17: the last step was the first after a synchronisation
  run(o, problem, 15);
  CHECK(o.lrs == 0);
  const auto v = o.ranks[0].v;
  resume_as_deepspeed(o);
  CHECK(o.policy.local_interval == 1);
  // After the freeze the engine's all-reduce stays off, but the restarted policy updates v.
  CHECK(step(o, gradients(problem, o)) == Step::silent);
  CHECK(o.ranks[0].v != v);
  CHECK(o.ranks[0].v != o.ranks[1].v);
  CHECK(o.ranks[0].p != o.ranks[1].p);
  // Then it is frozen again and synchronises in every step; the replicas no longer agree.
  CHECK(step(o, gradients(problem, o)) == Step::onebit);
  CHECK(step(o, gradients(problem, o)) == Step::onebit);
  float apart = 0;
  for (std::size_t e = 0; e < problem.initial.size(); ++e) {
    apart = std::max(apart, std::fabs(o.ranks[1].p[e] - o.ranks[0].p[e]));
  }
  CHECK(apart > 1e-4f);
}

TEST_CASE("0/1 Adam resumed before its freeze averages in full when the saved interval is due") {
  const iris::Problem problem = iris::network();
  ZeroOneAdamOptions options;
  options.var_update_scaler =
      1;  // full at steps 1, 2, 4, 8, 16: every full step doubles the interval
  for (const int steps : {6, 7}) {
    ZeroOneAdam o = zero_one(2, options);
    run(o, problem, steps);
    CHECK(o.policy.var_interval == 8);
    resume_as_deepspeed(o);
    // Step 8 is due; step 7 is not and becomes local. From then on the interval is 1 or 2.
    CHECK(step(o, gradients(problem, o)) == (steps == 7 ? Step::full : Step::silent));
    CHECK((o.ranks[0].p == o.ranks[1].p) == (steps == 7));
  }
}

TEST_CASE("0/1 Adam rejects a freeze or a largest interval below 1") {
  ZeroOneAdamOptions options;
  options.var_freeze_step = 0;
  CHECK_THROWS_WITH(zero_one(2, options), "var_freeze_step: must be at least 1");
  // DeepSpeed's dry run sets state.step to 1, so 0 freezes after one update, as 1 does.
  ZeroOneAdam o = zero_one(2, options, deepspeed_quirks());
  CHECK(step(o, gradients(iris::network(), o)) == Step::full);
  CHECK(o.policy.frozen);
  options.var_freeze_step = 1;
  options.local_step_clipper = 0;
  CHECK_THROWS_WITH(zero_one(2, options), "local_step_clipper: must be at least 1");
}

TEST_CASE("the local interval doubles up to its limit, for any limit") {
  ZeroOneAdamOptions options;
  options.local_step_scaler = 1;
  for (const int most : {1, 3, 16, 2147483647}) {
    options.local_step_clipper = most;
    ZeroOnePolicy policy;
    policy.frozen = true;
    for (int step = 1; step <= 40; ++step) advance(policy, step, step, options);
    CHECK(policy.local_interval == most);
  }
}

TEST_CASE("a synchronisation after learning rates of 0 is skipped; DeepSpeed divides by them") {
  const iris::Problem problem = iris::network();
  ZeroOneAdamOptions options;
  options.var_freeze_step = 2;
  Quirks divides;
  divides.zero_lr_poisons = true;
  for (const Quirks& quirks : {Quirks{}, divides}) {
    ZeroOneAdam o = zero_one(3, options, quirks);
    run(o, problem, 5);
    o.options.adam.lr = 0;
    const auto before = o.ranks[0].p;
    const Step did = step(o, gradients(problem, o));
    o.options.adam.lr = 1e-3;
    run(o, problem, 1);
    if (quirks.zero_lr_poisons) {
      CHECK(did == Step::onebit);
      CHECK_FALSE(std::isfinite(o.ranks[0].p[0]));
    } else {
      CHECK(did == Step::silent);
      CHECK(o.ranks[0].p != before);
      for (const float p : o.ranks[0].p) REQUIRE(std::isfinite(p));
    }
  }
}

TEST_CASE("the mask keeps an element of 0/1 Adam in place, but a single rank does not mask") {
  const iris::Problem problem = iris::network();
  for (const int n : {1, 3}) {
    World world = world_of(problem, n);
    world.mask.assign(world.tensors.elements(), 1.0f);
    world.mask[10] = 0;
    ZeroOneAdamOptions options;
    options.var_freeze_step = 1;
    ZeroOneAdam o = zero_one_adam(world, options);
    run(o, problem, 1);
    const float at_freeze = o.ranks[0].p[10];
    run(o, problem, 5);
    // Rewinding and moving again may leave a rounding error.
    CHECK((std::fabs(o.ranks[0].p[10] - at_freeze) < 1e-6f) == (n > 1));
  }
}

TEST_CASE("0/1 Adam in fp32 loses its first gradient, and has no bias correction") {
  const iris::Problem problem = iris::network();
  Quirks first;
  first.dry_run = DryRun::on_first_gradient;
  ZeroOneAdamOptions options;
  options.var_freeze_step = 3;
  options.adam.bias_correction = true;
  ZeroOneAdam o = zero_one(2, options, first);
  CHECK(step(o, gradients(problem, o)) == Step::dry_run);
  CHECK(o.ranks[0].p == problem.initial);
  options.adam.bias_correction = false;
  ZeroOneAdam right = zero_one(2, options);
  run(o, problem, 3);
  run(right, problem, 3);
  CHECK(o.policy.frozen);
  CHECK(o.ranks[0].p == right.ranks[0].p);
  CHECK(o.step == 4);
}
