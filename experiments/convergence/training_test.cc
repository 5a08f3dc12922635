#include "experiments/convergence/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "experiments/convergence/curves.h"
#include "experiments/convergence/wall_time.h"
#include "experiments/phases/freeze_log.h"
#include "sim/base/file.h"

using namespace lambcast;
using namespace lambcast::convergence;

namespace {

// A recipe small enough for a test: 5,000 parameters; the variance averages over 50 of 500 steps.
Recipe small() {
  Recipe recipe;
  recipe.shape = {.width = 16, .layers = 1, .heads = 2, .context = 16};
  recipe.steps = 500;
  recipe.lr_warmup = 25;
  recipe.beta2 = 0.98;
  recipe.held_out_every = 500;
  return recipe;
}

// Largest cost of the monitor's step, as a share of the loss reduction of the whole training. 1-bit
// Adam reaches a lower loss here if it freezes long before its variance settles, which no monitor
// of the variance can detect.
double margin(Optimizer optimizer) { return optimizer == Optimizer::onebit_lamb ? 0.02 : 0.04; }

// Returns the loss at the monitor's freeze step minus the least loss of all runs of the
// optimizer, as a fraction of the loss reduction of the whole training.
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
    // The monitor freezes no earlier than after two averaging lengths of the variance, or not at
    // all.
    CHECK((curves.front().frozen_at == 0 || curves.front().frozen_at >= 100));
    CHECK(cost_of_monitor(curves, optimizer, untrained) < margin(optimizer));
  }
}

TEST_CASE("the monitor's step costs at most the margin on the recorded curves of both sizes") {
  for (const char* file : {LAMBCAST_CURVES, LAMBCAST_CURVES_LARGE}) {
    const std::vector<Curve> curves = parse_curves(read_file(file), file, study_runs(Recipe{}));
    for (const Optimizer optimizer : {Optimizer::onebit_lamb, Optimizer::onebit_adam})
      CHECK(cost_of_monitor(curves, optimizer, std::log(61.0)) < margin(optimizer));
  }
}

TEST_CASE("a monitor with a latest step freezes there as a fixed step does") {
  Recipe recipe = small();
  recipe.steps = 150;
  recipe.latest_share = 0.5;
  const text::Transformer model = text::transformer(recipe.shape);
  for (const Optimizer optimizer : {Optimizer::onebit_lamb, Optimizer::onebit_adam}) {
    const Curve watched = train(model, recipe, {optimizer, Exchange::plain, 0});
    const Curve fixed = train(model, recipe, {optimizer, Exchange::plain, 75});
    CHECK(watched.frozen_at == 75);
    REQUIRE(watched.points.size() == fixed.points.size());
    for (std::size_t i = 0; i < fixed.points.size(); ++i)
      CHECK(watched.points[i].loss == fixed.points[i].loss);
  }
}

TEST_CASE("on the recorded curves a latest step of 15 % costs less than the margin") {
  const Recipe recipe;
  const int latest = static_cast<int>(std::lround(0.15 * recipe.steps));
  for (const char* file : {LAMBCAST_CURVES, LAMBCAST_CURVES_LARGE}) {
    const std::vector<Curve> curves = parse_curves(read_file(file), file, study_runs(recipe));
    for (const Optimizer optimizer : {Optimizer::onebit_lamb, Optimizer::onebit_adam}) {
      double chosen = NAN, best = INFINITY;
      for (const Curve& curve : curves) {
        if (curve.run.optimizer != optimizer) continue;
        // The variance settles after the latest step or never, so the latest step decides.
        if (curve.run.freeze_step == 0) CHECK((curve.frozen_at == 0 || curve.frozen_at > latest));
        if (curve.run.freeze_step == 0) continue;
        if (curve.run.freeze_step == latest) chosen = final_loss(curve);
        best = std::min(best, final_loss(curve));
      }
      CAPTURE(file, name_of(optimizer));
      CHECK((chosen - best) / (std::log(61.0) - best) <
            (optimizer == Optimizer::onebit_lamb ? 0.01 : 0.04));
    }
  }
}

TEST_CASE("every run of the study is recorded, to its last step") {
  const Recipe recipe;
  const std::vector<Run> runs = study_runs(recipe);
  const auto curves = parse_curves(read_file(LAMBCAST_CURVES), LAMBCAST_CURVES, runs);
  REQUIRE(curves.size() == runs.size());
  for (const Curve& curve : curves) {
    CAPTURE(curve.run.name());
    CHECK(curve.points.back().step == recipe.steps);
    CHECK(std::isfinite(curve.points.back().held_out));
    CHECK(step_times(curve.run, recipe.steps).after_s > 0);
  }
}

TEST_CASE("every optimizer and exchange of the study learns") {
  Recipe recipe = small();
  recipe.steps = 100;
  const text::Transformer model = text::transformer(recipe.shape);
  const double untrained = text::held_out_loss(model, model.initial);
  std::set<std::string> names;
  for (Run run : study_runs(recipe)) {
    names.insert(run.name());
    if (freezes(run.optimizer)) continue;  // tested above, for more steps
    const Curve curve = train(model, recipe, run);
    CAPTURE(run.name(), final_loss(curve, 1));
    // random_k_1 learns least: its loss falls by 0.15
    CHECK(final_loss(curve, 1) < untrained - 0.1);
    CHECK(curve.frozen_at == 0);
  }
  CHECK(names.size() == study_runs(recipe).size());
}

TEST_CASE("a run's log of its variance shows afterwards which step the monitor chose") {
  const Recipe recipe = small();
  const text::Transformer model = text::transformer(recipe.shape);
  std::string text = "step,layer,norm,elements\n";
  const auto log = [&](int step, std::span<const double> norms) {
    for (std::size_t t = 0; t < norms.size(); ++t)
      text += fmt::format("{},tensor {},{},{}\n", step, t, norms[t], model.tensors.size(t));
  };
  const Run monitored{Optimizer::onebit_lamb, Exchange::plain, 0};
  const Curve curve = train(model, recipe, monitored, log);
  const auto chosen = [&](int latest) {
    return choose_freeze_step(
        parse_freeze_log(text, "log", {}, false),
        {.beta2 = recipe.beta2, .earliest = recipe.lr_warmup, .latest = latest});
  };
  CHECK(chosen(0).step == curve.frozen_at);
  CHECK(curve.frozen_at > 0);
  // With a latest step before that, training and freeze log both end the warm-up at the latest
  // step. A later one changes nothing.
  Recipe told = recipe;
  const int latest = curve.frozen_at - 10;
  REQUIRE(latest > recipe.lr_warmup);
  told.latest_share = static_cast<double>(latest) / recipe.steps;
  CHECK(train(model, told, monitored).frozen_at == chosen(latest).step);
  CHECK(chosen(latest).step < curve.frozen_at);
  told.latest_share = 1;
  CHECK(train(model, told, monitored).frozen_at == chosen(recipe.steps).step);
  CHECK(chosen(recipe.steps).step == curve.frozen_at);
}

// Returns the larger loss of the runs with the fixed shares before and after the step. A choice
// between these two shares costs at most as much.
double worst_around(const std::vector<Curve>& curves, Optimizer optimizer, int step) {
  const Curve *below = nullptr, *above = nullptr;
  for (const Curve& curve : curves) {
    const int frozen = curve.run.freeze_step;
    if (curve.run.optimizer != optimizer || frozen == 0) continue;
    if (frozen <= step && (below == nullptr || frozen > below->run.freeze_step)) below = &curve;
    if (frozen >= step && (above == nullptr || frozen < above->run.freeze_step)) above = &curve;
  }
  REQUIRE(below != nullptr);
  REQUIRE(above != nullptr);
  return std::max(final_loss(*below), final_loss(*above));
}

TEST_CASE("the step that the loss of the plain run chooses costs no more than the margin either") {
  for (const char* file : {LAMBCAST_CURVES, LAMBCAST_CURVES_LARGE}) {
    const Recipe recipe;
    const std::vector<Curve> curves = parse_curves(read_file(file), file, study_runs(recipe));
    for (const auto& [plain, compressed] : {std::pair{Optimizer::lamb, Optimizer::onebit_lamb},
                                            std::pair{Optimizer::adam, Optimizer::onebit_adam}}) {
      std::string text = "step,loss\n";
      double best = INFINITY;
      for (const Curve& curve : curves) {
        if (curve.run.optimizer == compressed) best = std::min(best, final_loss(curve));
        if (curve.run.optimizer != plain || curve.run.exchange != Exchange::plain) continue;
        for (const Point& point : curve.points)
          text += fmt::format("{},{}\n", point.step, point.loss);
      }
      const FreezeChoice choice =
          choose_freeze_step(parse_freeze_log(text, "log", {}, false),
                             {.beta2 = recipe.beta2, .earliest = recipe.lr_warmup});
      CAPTURE(file, name_of(compressed), choice.step);
      const double chosen = worst_around(curves, compressed, choice.step);
      CHECK((chosen - best) / (std::log(61.0) - best) < margin(compressed));
    }
  }
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
  CHECK(times.after_s < times.warm_up_s);
  // Error feedback adds a pass and another all-gather. On another cluster all times differ.
  const auto mean_of = [](Exchange exchange, const Clock& clock) {
    return step_times({Optimizer::lamb, exchange}, 2000, clock).after_s;
  };
  const Clock near{"hgx-h100-ndr", 64};
  CHECK(mean_of(Exchange::int4, near) > mean_of(Exchange::plain, near));
  CHECK(mean_of(Exchange::int4, {}) < mean_of(Exchange::plain, {}));
  CHECK(mean_of(Exchange::qgz_int4, {}) != mean_of(Exchange::int4, {}));
  CHECK(step_times({Optimizer::adam, Exchange::local_steps_16}, 2000).after_s <=
        step_times({Optimizer::adam, Exchange::diloco_16}, 2000).after_s);
  CHECK_THROWS_WITH(mean_of(Exchange::plain, {"nowhere", 64}), Catch::Contains("nowhere"));
}
