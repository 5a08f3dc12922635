#include "experiments/convergence/training.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "experiments/convergence/curves.h"
#include "experiments/convergence/wall_time.h"
#include "sim/base/file.h"

using namespace lambcast;
using namespace lambcast::convergence;

namespace {

// Small enough for a test: 5,000 parameters; the variance remembers 50 of 500 steps.
Recipe small() {
  Recipe recipe;
  recipe.shape = {.width = 16, .layers = 1, .heads = 2, .context = 16};
  recipe.steps = 500;
  recipe.lr_warmup = 25;
  recipe.beta2 = 0.98;
  recipe.held_out_every = 500;
  return recipe;
}

// Of all that training gains. 1-bit Adam ends lower here where it freezes long before its variance
// settles, which no monitor of the variance can know.
double margin(Optimizer optimizer) { return optimizer == Optimizer::onebit_lamb ? 0.02 : 0.04; }

// What freezing where the monitor says costs of all that training gains, against the best of the
// fixed shares.
double cost_of_monitor(const std::vector<Curve>& curves, Optimizer optimizer, double untrained) {
  double chosen = NAN, best = INFINITY;
  for (const Curve& curve : curves) {
    if (curve.run.optimizer != optimizer) continue;
    if (curve.run.freeze_step == 0) chosen = final_loss(curve);
    best = std::min(best, final_loss(curve));
  }
  return (chosen - best) / (untrained - best);
}

}  // namespace

TEST_CASE(
    "on a transformer the monitor's step costs at most a margin against the best fixed share") {
  const Recipe recipe = small();
  const text::Transformer model = text::transformer(recipe.shape);
  const double untrained = text::held_out_loss(model, model.initial);
  for (const Optimizer optimizer : {Optimizer::onebit_lamb, Optimizer::onebit_adam}) {
    std::vector<Curve> curves;
    for (const int freeze_step : {0, 25, 50, 100, 200}) {
      curves.push_back(train(model, recipe, {optimizer, Exchange::plain, freeze_step}));
      CAPTURE(curves.back().run.name(), curves.back().frozen_at, final_loss(curves.back()));
      CHECK(final_loss(curves.back()) < untrained - 1);
    }
    // Two memories of the variance at the earliest; it need not settle at all.
    CHECK((curves.front().frozen_at == 0 || curves.front().frozen_at >= 100));
    CHECK(cost_of_monitor(curves, optimizer, untrained) < margin(optimizer));
  }
}

TEST_CASE("on the recorded curves too") {
  const std::vector<Curve> curves =
      parse_curves(read_file(LAMBCAST_CURVES), LAMBCAST_CURVES, study_runs(Recipe{}));
  REQUIRE(curves.size() >= 8);
  for (const Optimizer optimizer : {Optimizer::onebit_lamb, Optimizer::onebit_adam})
    CHECK(cost_of_monitor(curves, optimizer, std::log(61.0)) < margin(optimizer));
}

TEST_CASE("curves survive the file, and hours follow the stage") {
  Curve curve{.run = {Optimizer::onebit_lamb, Exchange::plain, 50},
              .frozen_at = 50,
              .points = {{100, 2.5, NAN}, {200, 2.25, 2.4}}};
  const std::vector<Curve> read = parse_curves(curves_csv({curve}), "curves", {curve.run});
  REQUIRE(read.size() == 1);
  CHECK(read[0].frozen_at == 50);
  CHECK(read[0].points[1].loss == 2.25);
  CHECK(read[0].points[1].held_out == 2.4);
  CHECK(std::isnan(read[0].points[0].held_out));
  CHECK(final_loss(read[0], 1) == 2.25);
  // 50 steps of 3.6 s and 150 of 0.36 s.
  CHECK(hours_at(curve, {3.6, 0.36}, 200) == Approx(0.05 + 0.015));
  CHECK(hours_at(curve, {3.6, 0.36}, 40) == Approx(0.04));
  const auto times = step_times(curve.run, 2000);
  REQUIRE(times);
  CHECK(times->after_s < times->warm_up_s);
  CHECK(!step_times({Optimizer::lamb, Exchange::qgz_int4}, 2000));
}
