// Compressed optimizers learn as well as the plain ones.
#include "kernels/emulated_world/training.h"

#include <catch2/catch.hpp>

#include "kernels/emulated_world/onebit_adam.h"
#include "kernels/emulated_world/onebit_lamb.h"
#include "kernels/emulated_world/plain.h"
#include "kernels/emulated_world/zero_one_adam.h"
#include "kernels/reference/freeze.h"

using namespace lambcast;
using namespace lambcast::emulated;

namespace {
void lamb_lr(Lamb& o, double lr) { o.options.lr = lr; }
void onebit_lamb_lr(OnebitLamb& o, double lr) { o.options.lamb.lr = lr; }
void adam_lr(Adam& o, double lr) { o.options.lr = lr; }
void onebit_adam_lr(OnebitAdam& o, double lr) { o.options.adam.lr = lr; }
void zero_one_lr(ZeroOneAdam& o, double lr) { o.options.adam.lr = lr; }
}  // namespace

TEST_CASE("LAMB and 1-bit LAMB reach the least-squares loss of a real regression") {
  const iris::Problem problem = iris::regression();
  const double best = iris::least_squares_loss();
  CHECK(problem.loss(problem.initial, 0, 1, {}) > 10 * best);
  for (const int n : {2, 8}) {
    Lamb plain = lamb(world_of(problem, n), {});
    CHECK(train(problem, plain, 600, 0.02, lamb_lr) == Approx(best).epsilon(0.001));
    for (const Quirks& quirks : {Quirks{}, deepspeed_quirks()}) {
      for (const int freeze_step : {200, 400}) {
        OnebitLambOptions options;
        options.freeze_step = freeze_step;
        OnebitLamb compressed = onebit_lamb(world_of(problem, n, quirks), options);
        CHECK(train(problem, compressed, 600, 0.02, onebit_lamb_lr) == Approx(best).epsilon(0.01));
      }
    }
  }
}

TEST_CASE("LAMB and 1-bit LAMB reach the same loss on a real network, unless frozen too early") {
  // A variance and a coefficient that freeze while the loss still falls steeply slow training down.
  // After that, 1-bit LAMB reaches the loss of LAMB. 0.0006 is below a thousandth of log(3).
  const iris::Problem problem = iris::network();
  const auto final_loss = [&](int freeze_step) {
    OnebitLambOptions options;
    options.freeze_step = freeze_step;
    OnebitLamb compressed = onebit_lamb(world_of(problem, 6), options);
    return train(problem, compressed, 600, 0.02, onebit_lamb_lr);
  };
  Lamb plain = lamb(world_of(problem, 6), {});
  const double reached = train(problem, plain, 600, 0.02, lamb_lr);
  CHECK(reached < 0.001);
  CHECK(final_loss(400) == Approx(reached).epsilon(0.1));
  CHECK(final_loss(200) == Approx(reached).epsilon(0.2));
  const double early = final_loss(25), middle = final_loss(100);
  CHECK(early > 10 * reached);
  CHECK(middle < early);
}

TEST_CASE("the freeze step chosen by the variance costs at most 2 % against the best fixed share") {
  constexpr int never = 1000000;
  for (const iris::Problem& problem : {iris::network(), iris::regression()}) {
    // Each rank and step uses five of the 150 rows, whose noise the variance converges to.
    const auto batches = [&](const OnebitLamb& o, int k) {
      std::vector<std::vector<float>> all;
      for (int r = 0; r < 6; ++r) {
        all.emplace_back(problem.tensors.elements());
        problem.loss(weights(o, r), static_cast<std::size_t>(7 * k + 11 * r) % 30, 30, all.back());
      }
      return all;
    };
    const auto trained = [&](int freeze_step, reference::FreezeMonitor* monitor) {
      OnebitLambOptions options;
      options.lamb.beta2 = 0.98;  // D = 50
      options.freeze_step = freeze_step;
      OnebitLamb o = onebit_lamb(world_of(problem, 6), options);
      for (int k = 1; k <= 1000; ++k) {
        o.options.lamb.lr = 0.02 * (1 - (k - 1) / 1000.0);
        step(o, batches(o, k));
        if (monitor == nullptr || !measures(*monitor, k)) continue;
        const auto norms = reference::variance_norms(o.ranks[0].v, problem.tensors);
        if (may_freeze(*monitor, k, norms)) begin_compression(o);
      }
      return problem.loss(weights(o, 0), 0, 1, {});
    };
    auto monitor = reference::freeze_monitor(problem.tensors, {.beta2 = 0.98});
    const double chosen = trained(never, &monitor);
    CHECK(monitor.frozen_at > 100);
    CHECK(monitor.frozen_at < 700);
    double best = chosen;
    for (const int share : {100, 150, 200, 300, never})
      best = std::min(best, trained(share, nullptr));
    // Cost of freezing at the chosen step, relative to the gain of training; 30 steps are too few.
    const double gain = problem.loss(problem.initial, 0, 1, {}) - best;
    CHECK(chosen - best < 0.02 * gain);
    CHECK(trained(30, nullptr) - best > 0.02 * gain);
  }
}

TEST_CASE("1-bit Adam and 0/1 Adam reach the loss of Adam on a real network") {
  const iris::Problem problem = iris::network();
  Adam plain = adam(world_of(problem, 6), {});
  const double reached = train(problem, plain, 600, 0.01, adam_lr);
  OnebitAdamOptions options;
  options.freeze_step = 100;
  OnebitAdam onebit = onebit_adam(world_of(problem, 6), options);
  CHECK(train(problem, onebit, 600, 0.01, onebit_adam_lr) == Approx(reached).epsilon(0.05));
  ZeroOneAdamOptions local;
  local.var_freeze_step = 200;
  local.local_step_scaler = 100;
  local.local_step_clipper = 4;
  ZeroOneAdam zero_one = zero_one_adam(world_of(problem, 6), local);
  CHECK(train(problem, zero_one, 600, 0.01, zero_one_lr) == Approx(reached).epsilon(0.05));
}
