#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/emulated_world/onebit_adam.h"
#include "kernels/emulated_world/plain.h"
#include "kernels/emulated_world/training.h"
#include "kernels/emulated_world/zero_one_adam.h"
#include "sim/base/error.h"

using namespace lambcast;
using namespace lambcast::emulated;

namespace {

template <typename Optimizer>
void run(Optimizer& o, const iris::Problem& problem, int steps) {
  for (int k = 0; k < steps; ++k) step(o, gradients(problem, o));
}

OnebitAdam onebit(int ranks, int freeze_step, Quirks quirks = {}) {
  OnebitAdamOptions options;
  options.adam.lr = 0.01;
  options.freeze_step = freeze_step;
  return onebit_adam(world_of(iris::network(), ranks, quirks), options);
}

ZeroOneAdam zero_one(int ranks, ZeroOneAdamOptions options, Quirks quirks = {}) {
  return zero_one_adam(world_of(iris::network(), ranks, quirks), options);
}

struct Counts {
  int full = 0, onebit = 0, silent = 0;
};

// Replays the policy alone over real steps; the dry run makes real step k have step k + 1.
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

TEST_CASE("Adam over n ranks is Adam on the mean gradient") {
  const iris::Problem problem = iris::network();
  Adam alone = adam(world_of(problem, 1), {}), three = adam(world_of(problem, 3), {});
  run(alone, problem, 10);
  run(three, problem, 10);
  // 150 rows divide by 3, so the mean of the ranks' gradients is the full gradient up to rounding.
  for (std::size_t e = 0; e < alone.p.size(); ++e) {
    CHECK(three.p[e] == Approx(alone.p[e]).epsilon(1e-3).margin(1e-5));
  }
}

TEST_CASE("1-bit Adam freezes after freeze_step updates, one less in DeepSpeed") {
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

TEST_CASE("one rank alone does not compress: 1-bit Adam is then Adam with a frozen variance") {
  const iris::Problem problem = iris::network();
  OnebitAdam o = onebit(1, 3);
  run(o, problem, 3);
  const auto v = o.ranks[0].v;
  run(o, problem, 5);
  CHECK(o.ranks[0].v == v);
  CHECK(o.errors[0].worker[0] == std::vector<float>(64, 0.0f));
}

TEST_CASE("the policy of 0/1 Adam gives the published kinds of steps") {
  // Replays of the bing_bert configuration, of the tutorial's, and of no freeze at all.
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
  // Without the dry run the intervals are met one step later; no step is lost.
  const Counts right = replay(150000, {.adam = {}, .var_freeze_step = 12500}, false);
  CHECK(right.full + right.onebit + right.silent == 150000);
}

TEST_CASE("0/1 Adam's replicas part in silent steps and meet again at the synchronisation") {
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
      // Rewinding a few steps leaves rounding of weights below 1: some 6e-8 each, growing slowly.
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

TEST_CASE("DeepSpeed's checkpoint of 0/1 Adam restarts the policy") {
  const iris::Problem problem = iris::network();
  ZeroOneAdamOptions options;
  options.var_freeze_step = 4;
  options.local_step_scaler = 2;
  ZeroOneAdam o = zero_one(2, options);
  run(o, problem, 15);
  CHECK(o.policy.local_interval == 16);
  resume_as_deepspeed(o);
  CHECK(o.policy.local_interval == 1);
  CHECK(o.lrs == 0);
  CHECK(step(o, gradients(problem, o)) == Step::onebit);
  options.var_freeze_step = 0;
  CHECK_THROWS_WITH(zero_one(2, options), "var_freeze_step: must be at least 1");
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
