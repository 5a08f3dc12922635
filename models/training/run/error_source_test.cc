#include "models/training/run/error_source.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "models/training/run/forecast.h"
#include "models/training/run/layout_case.h"
#include "topologies/common_error.h"

namespace lambcast {
namespace {

const ErrorShare* share_of(const RatioInterval& ratio, const std::string& name) {
  const auto found = std::ranges::find_if(ratio.shares, [&](const ErrorShare& share) {
    return name_of_source(share.source).find(name) != std::string::npos;
  });
  return found == ratio.shares.end() ? nullptr : &*found;
}

TEST_CASE("error_source: the ratio of a run to itself is certain") {
  const Forecast run = forecast_of(training_of({OptimizerType::onebit_lamb, 64}));
  const RatioInterval same = ratio_of(run.time, run.time);
  CHECK(same.value == 1);
  CHECK(same.low == 1);
  CHECK(same.high == 1);
  CHECK(same.shares.empty());
  // On another machine the errors are independent, and the errors of both runs add up.
  const RatioInterval apart = ratio_of(run.time, run.time, ErrorSources());
  CHECK(apart.low < 1);
  CHECK(apart.high > 1);
  CHECK(apart.low * apart.high == Approx(1).epsilon(1e-9));
}

TEST_CASE("error_source: common errors cancel, so a ratio is more certain than its two times") {
  const Forecast run = forecast_of(training_of({OptimizerType::onebit_lamb, 64}));
  REQUIRE(run.run.speedup.has_value());
  const RatioInterval& speedup = *run.run.speedup;
  CHECK(speedup.value == Approx(run.run.speedup_vs_baseline).epsilon(1e-9));
  CHECK(speedup.low < speedup.value);
  CHECK(speedup.high > speedup.value);
  // Dividing the interval ends of both runs gives a wider interval.
  double plain_low = run.plain_time.s, plain_high = run.plain_time.s;
  for (const auto& at : run.plain_time.at) {
    plain_low -= run.plain_time.s - at.low_s;
    plain_high += at.high_s - run.plain_time.s;
  }
  CHECK(speedup.high / speedup.low <
        plain_high / plain_low * run.run.time_high_s / run.run.time_low_s);
  // Passes are in both runs: at their slow end both runs are longer and the ratio is closer to 1.
  const ErrorShare* passes = share_of(speedup, "passes");
  REQUIRE(passes != nullptr);
  CHECK(std::abs(std::log(passes->high / passes->low)) <
        0.5 * std::log(speedup.high / speedup.low));
}

TEST_CASE("error_source: kernels add up in squares, collectives together, widest first") {
  const RatioInterval speedup =
      *forecast_of(training_of({OptimizerType::onebit_lamb, 64})).run.speedup;
  // Without the errors in common, effects add up in squares. A slow network slows the all_reduces
  // of the baseline and the exchange of the other run, so the errors in common narrow the interval.
  double below = 0, above = 0;
  for (std::size_t i = 0; i < speedup.shares.size(); ++i) {
    const ErrorShare& share = speedup.shares[i];
    CHECK(share.low <= speedup.value);
    CHECK(share.high >= speedup.value);
    below += std::pow(std::log(share.low / speedup.value), 2);
    above += std::pow(std::log(share.high / speedup.value), 2);
    if (i > 0)
      CHECK(share.high / share.low <=
            speedup.shares[i - 1].high / speedup.shares[i - 1].low * (1 + 1e-12));
    CHECK_FALSE(measurement_of(share.source).empty());
  }
  CHECK(speedup.low > speedup.value * std::exp(-std::sqrt(below)));
  CHECK(speedup.high < speedup.value * std::exp(std::sqrt(above)));
  // Only the baseline and the warm-up reduce gradients, so the error of all_reduce changes the
  // speed-up.
  REQUIRE(share_of(speedup, "all_reduce over nccl") != nullptr);
}

double longer_by(const Price& price) {
  return (interval_of(price.time, price.wires, price.compute).high - price.time).s();
}

TEST_CASE("error_source: without overlap, a source changes the step as much as its operations") {
  const TrainingPlan training = training_of({OptimizerType::lamb, 64});
  CollectiveCosts costs;
  const StepRun step = run_step(training, {StepKind::uniform, training.seq_len, 1}, costs);
  const TimeAtEnds time = time_at_ends(step, training);
  CHECK(time.s == step.metrics.step_time.s());
  double longer = 0, of_sources = 0;
  for (const Price& price : step.prices) longer += longer_by(price);
  for (const auto& at : time.at) of_sources += at.high_s - time.s;
  CHECK(of_sources == Approx(longer).epsilon(1e-9));
}

// Returns the times of a step with one call, which takes 1 s, within a factor of 1.1.
TimeAtEnds alone(Op op, const TrainingPlan& training, StepRun step) {
  step.plan.ops.resize(1);
  Call call;
  call.op = op;
  call.group = {16, 4};
  step.plan.ops[0].work = call;
  Price price;
  price.time = step.metrics.step_time = Duration::seconds(1);
  price.compute = {price.time, price.time};
  price.wires = {Duration::seconds(1 / 1.1), Duration::seconds(1.1)};
  step.prices = {price};
  step.execution = execute(step.plan, step.prices, Intervals::left_out);
  return time_at_ends(step, training);
}

// If two calls have errors with c in common and intervals of half-width w (in logarithms), the
// half-width of their ratio is w sqrt(2 (1 - c)), and that of their sum is w sqrt(2 (1 + c)) / 2.
TEST_CASE("error_source: errors in common cancel in a ratio and add up in a sum") {
  const TrainingPlan training = training_of({OptimizerType::onebit_lamb, 64});
  CollectiveCosts costs;
  const StepRun step = run_step(training, {StepKind::uniform, training.seq_len, 1}, costs);
  const TimeAtEnds reduce = alone(Op::all_reduce, training, step);
  const TimeAtEnds gather = alone(Op::all_gather, training, step);
  const double c = common_error(*training.cluster, Backend::nccl, Op::all_reduce, {16, 4});
  REQUIRE(c > 0);
  REQUIRE(c == common_error(*training.cluster, Backend::nccl, Op::all_gather, {16, 4}));
  const double w = std::log(1.1);
  const RatioInterval ratio = ratio_of(reduce, gather);
  CHECK(std::log(ratio.high) == Approx(w * std::sqrt(2 * (1 - c))).epsilon(1e-6));
  CHECK(std::log(ratio.low) == Approx(-w * std::sqrt(2 * (1 - c))).epsilon(1e-6));
  CHECK(ratio.shares.size() == 2);
  CHECK(ratio_of(reduce, reduce).high == 1);
  TimeAtEnds exact, sum = reduce;
  exact.s = 1;
  exact.at.fill({1, 1});
  CHECK(ratio_of(reduce, exact).high == Approx(1.1));
  CHECK(ratio_of(reduce, exact).low == Approx(1 / 1.1));
  sum.add(gather, 1);
  CHECK(std::log(ratio_of(sum, exact).high / 2) ==
        Approx(std::log(1.05) * std::sqrt(2 * (1 + c))).epsilon(1e-6));
}

// Returns the times of a step that computes for 1 s, within 0.1 s, and waits `exposed_s` for an
// all-gather within its passes, within a tenth of that.
TimeAtEnds passes_that_wait(double exposed_s, const TrainingPlan& training, StepRun step) {
  step.plan.ops.resize(1);
  step.plan.ops[0].work = StageWork{};
  const auto seconds = [&](double compute_s, double wires_s) {
    return Duration::seconds(compute_s + wires_s);
  };
  Price price;
  price.time = step.metrics.step_time = seconds(1, exposed_s);
  price.compute = {seconds(0.9, exposed_s), seconds(1.1, exposed_s)};
  price.wires = {seconds(1, 0.9 * exposed_s), seconds(1, 1.1 * exposed_s)};
  price.wires_by_kind = {{{Backend::nccl, Op::all_gather}, price.wires, 0.5}};
  step.prices = {price};
  step.execution = execute(step.plan, step.prices, Intervals::left_out);
  return time_at_ends(step, training);
}

// A run that waits 1 s takes 2 s, and one that does not wait 1 s. At the ends of computation their
// ratio is 1.9 / 0.9 and 2.1 / 1.1, at those of the all-gather 1.9 and 2.1.
TEST_CASE("error_source: collectives within passes do not err with the computation") {
  const TrainingPlan training = training_of({OptimizerType::onebit_lamb, 64});
  CollectiveCosts costs;
  const StepRun step = run_step(training, {StepKind::uniform, training.seq_len, 1}, costs);
  const TimeAtEnds waits = passes_that_wait(1, training, step);
  const TimeAtEnds hides = passes_that_wait(0, training, step);
  const RatioInterval ratio = ratio_of(waits, hides);
  CHECK(ratio.value == Approx(2));
  CHECK(ratio.high == Approx(2 * std::exp(std::hypot(std::log(2.1 / 2), std::log(1.9 / 0.9 / 2)))));
  CHECK(ratio.low == Approx(2 * std::exp(-std::hypot(std::log(2 / 1.9), std::log(2 * 1.1 / 2.1)))));
  REQUIRE(ratio.shares.size() == 2);
  CHECK(share_of(ratio, "all_gather over nccl") != nullptr);
  CHECK(ratio_of(waits, waits).high == 1);
}

// Under a layout, each kind of collective in the passes errs on its own, and all of them together
// as the wires of the passes.
TEST_CASE("error_source: kinds of collectives within the passes of a layout") {
  const TrainingPlan training = layout_training({.tp = 4, .dp = 8, .pp = 2});
  CollectiveCosts costs;
  const StepRun step = run_step(training, {StepKind::uniform, training.seq_len, 1}, costs);
  bool found = false;
  for (const Price& price : step.prices) {
    if (price.wires_by_kind.empty()) continue;
    found = true;
    CHECK(price.wires_by_kind.size() == 2);  // all_reduce of tensors, send_recv of stages
    double longer_s = 0;
    for (const WiresOfKind& of : price.wires_by_kind) {
      CHECK(of.wires.high >= price.time);
      CHECK(of.wires.low <= price.time);
      longer_s += (of.wires.high - price.time).s();
    }
    CHECK(longer_s == Approx((price.wires.high - price.time).s()).epsilon(0.1).margin(1e-6));
  }
  CHECK(found);
}

TEST_CASE("error_source: each has a name and a measurement of its own") {
  std::set<std::string> names, measurements;
  for (std::size_t source = 0; source < error_sources; ++source) {
    names.insert(name_of_source(source));
    measurements.insert(measurement_of(source));
  }
  CHECK(names.size() == error_sources);
  CHECK(measurements.size() == error_sources);
  CHECK(names.contains("all_gather over nccl"));
  CHECK(names.contains("all_to_all over mpi (cuda_aware)"));
}

TEST_CASE("error_source: communication hidden behind the backward pass does not change the step") {
  TrainingPlan training = training_of({OptimizerType::lamb, 16, "hgx-h100-ndr"});
  training.overlap = Overlap::ddp;
  CollectiveCosts costs;
  const StepRun step = run_step(training, {StepKind::uniform, training.seq_len, 1}, costs);
  const TimeAtEnds time = time_at_ends(step, training);
  double longer = 0;
  for (std::size_t i = 0; i < step.prices.size(); ++i)
    if (std::holds_alternative<Call>(step.plan.ops[i].work)) longer += longer_by(step.prices[i]);
  const RatioInterval against_itself = ratio_of(time, time, ErrorSources());
  const ErrorShare* wire = share_of(against_itself, "all_reduce");
  const double moved = wire == nullptr ? 0 : time.s * (wire->high - 1);
  CHECK(moved < 0.9 * longer);
}

}  // namespace
}  // namespace lambcast
