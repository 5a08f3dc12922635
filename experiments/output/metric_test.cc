#include "experiments/output/metric.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <set>

#include "experiments/output/cell.h"
#include "experiments/scenario/scenario_case.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

const Where asked_for{"", 0, "TARGET"};

struct PricedRun {
  TrainingPlan training;
  Forecast forecast;
  MetricValue value(const char* metric) const {
    const std::optional<MetricValue> value = find_metric(metric, {}).of(training, forecast);
    REQUIRE(value.has_value());
    return *value;
  }
};

PricedRun priced(const WhatIf& changes = {}) {
  CollectiveCosts costs;
  TrainingPlan training = resolved(with(changes)).training;
  Forecast of = forecast(training, costs);
  return {std::move(training), std::move(of)};
}

std::string target_refused(const char* metric, const char* text) {
  try {
    find_metric(metric, {}).parse(text, asked_for);
  } catch (const Error& error) {
    CHECK(error.code() == Exit::usage);
    return error.what();
  }
  return {};
}

}  // namespace

TEST_CASE("metric: GPU hours, rates and the mean step follow from the run's time") {
  const PricedRun run = priced();
  const MetricValue time = run.value("run_time");
  CHECK(time.low < time.value);
  CHECK(time.high > time.value);
  // 64 GPUs, 65,536 samples of 128 tokens a step, 5,993 steps.
  const double samples = 65536.0 * 5993;
  struct Told {
    const char* metric;
    double times;  // value for a run of one second
    bool inverse;
  };
  for (const Told& told :
       {Told{"gpu_hours", 64.0 / 3600, false}, Told{"step_time", 1.0 / 5993, false},
        Told{"samples_per_s", samples, true}, Told{"tokens_per_s", samples * 128, true}}) {
    CAPTURE(told.metric);
    const MetricValue got = run.value(told.metric);
    const auto of = [&](double s) { return told.inverse ? told.times / s : told.times * s; };
    CHECK(got.value == Approx(of(time.value)));
    CHECK(*got.low == Approx(of(told.inverse ? *time.high : *time.low)));
    CHECK(*got.high == Approx(of(told.inverse ? *time.low : *time.high)));
  }
}

TEST_CASE("metric: exposed shares and bytes come from the forecast and have no interval") {
  const PricedRun run = priced();
  const MetricValue exposed = run.value("exposed");
  CHECK(exposed.value > 0);
  CHECK(exposed.value < 1);
  CHECK(priced({{"cluster", "dgx-a100-80g"}}).value("exposed").value < exposed.value);
  CHECK(run.value("memory").value == run.forecast.memory.peak.value());
  CHECK(run.value("wire_bytes").value == run.forecast.run.wire_bytes_per_gpu);
  for (const char* metric : {"exposed", "memory", "wire_bytes"}) {
    CHECK_FALSE(run.value(metric).low.has_value());
    CHECK_FALSE(run.value(metric).high.has_value());
  }
}

TEST_CASE("metric: a metric is absent if the run has no such figure") {
  const PricedRun images = priced({{"model", "resnet50"}});
  CHECK_FALSE(find_metric("tokens_per_s", {}).of(images.training, images.forecast).has_value());
  CHECK(images.value("samples_per_s").value > 0);
}

TEST_CASE("metric: a target is parsed in its own unit and in no other") {
  const auto read = [](const char* metric, const char* text) {
    return find_metric(metric, {}).parse(text, asked_for);
  };
  CHECK(read("run_time", "2d") == 172800);
  CHECK(read("run_time", "36 h") == 129600);
  CHECK(read("step_time", "250ms") == Approx(0.25));
  CHECK(read("speedup", "1.5x") == 1.5);
  CHECK(read("cost", "300 USD") == 300);
  CHECK(read("gpu_hours", "300") == 300);
  CHECK(read("efficiency", "90%") == 0.9);
  CHECK(read("exposed", "0.1") == 0.1);
  CHECK(read("memory", "80GB") == 80e9);
  CHECK(read("wire_bytes", "1TiB") == 1099511627776.0);
  for (const char* metric : {"speedup", "cost", "gpu_hours", "samples_per_s", "tokens_per_s"})
    for (const char* text : {"", "much", "0", "-1", "1y", "nan"}) {
      CAPTURE(metric, text);
      CHECK_THAT(target_refused(metric, text),
                 Contains("TARGET: ") && Contains("is not a number above zero"));
    }
  CHECK_THAT(target_refused("efficiency", "110%"),
             Contains("'110%' is not a share (allowed: 90% or 0.9)"));
  CHECK_THAT(target_refused("exposed", "2"), Contains("is not a share"));
  CHECK_THAT(target_refused("run_time", "0s"), Contains("must be above zero"));
  CHECK_THAT(target_refused("samples_per_s", "1e16"), Contains("too large"));
  CHECK_FALSE(target_refused("memory", "80").empty());
}

TEST_CASE("metric: each metric has its own name, and is written with its unit") {
  std::set<std::string_view> names;
  for (const Metric& metric : metrics()) {
    CAPTURE(metric.name);
    CHECK(names.insert(metric.name).second);
    CHECK(&find_metric(metric.name, {}) == &metric);
    CHECK_FALSE(metric.help.empty());
  }
  CHECK(find_metric("speedup", {}).text(1.5) == "1.500x");
  CHECK(find_metric("efficiency", {}).text(0.9) == "90.0 %");
  CHECK(find_metric("cost", {}).text(300) == usd_cell(300) + " USD");
  CHECK(find_metric("memory", {}).text(80e9) == "80 GB");
  CHECK(find_metric("memory", {}).cell(80e9) == bytes_cell(Bytes(80e9)));
}

}  // namespace lambcast
