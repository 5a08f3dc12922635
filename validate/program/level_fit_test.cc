#include "validate/program/level_fit.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "sim/base/error.h"
#include "validate/calibrate/calibrate.h"

namespace lambcast {
namespace {

// Returns a run on one node of H100 whose step is nearly all computation.
WhatIf computing_run() {
  return {{"model", "gpt2-xl"},
          {"cluster", "hgx-h100-ndr"},
          {"gpus", "8"},
          {"tp", "1"},
          {"framework", "megatron"},
          {"precision", "bf16"},
          {"optimizer", "adamw"},
          {"micro_batch", "1"},
          {"grad_accum", "64"},
          {"steps", "1"}};
}

SourceFigure step_of(const WhatIf& what_if, double seconds) {
  SourceFigure figure;
  figure.name = fmt::format("{:.4g} s", seconds);
  figure.measured = seconds;
  figure.what_if = what_if;
  return figure;
}

double forecast_s(const WhatIf& what_if) {
  return replay_figures({step_of(what_if, 1)}).front().forecast;
}

WhatIf with(WhatIf what_if, const ProgramLevel& program) {
  what_if["cluster.program.framework"] = program.framework;
  what_if["cluster.program.format"] = program.format;
  what_if["cluster.program.level"] = fmt::format("{:.12f}", program.level.value);
  what_if["cluster.program.low"] = fmt::format("{:.12f}", program.low);
  what_if["cluster.program.high"] = fmt::format("{:.12f}", program.high);
  return what_if;
}

// Scatter of logged steps widens the interval of the level, as scatter of runs does.
TEST_CASE("program level: the standard error of logged steps widens its interval") {
  const double before = forecast_s(computing_run());
  SourceFigure step = step_of(computing_run(), before);
  const LevelFit steady = fit_level({step});
  step.standard_error = 0.1;
  const LevelFit scattered = fit_level({step});
  const auto half = [](const LevelFit& fit) {
    return std::log(fit.program.high / fit.program.low) / 2 / 1.645;
  };
  CHECK(half(scattered) > 1.5 * half(steady));
  CHECK(half(scattered) < std::hypot(half(steady), 0.1));
}

TEST_CASE(
    "program level: the fit meets one measured step, and narrows the forecast of other runs") {
  const double before = forecast_s(computing_run());
  const LevelFit fit = fit_level({step_of(computing_run(), 1.3 * before)});
  CHECK(fit.program.framework == "megatron");
  CHECK(fit.program.format == "half");
  // The prior shrinks the logarithm of the level by 0.05^2 / (0.05^2 + 0.2^2) = 6 % (spreads of
  // runs and of programs), and by a little more because of the links.
  CHECK(std::log(fit.program.level.value) > 0.9 * std::log(1.3));
  CHECK(std::log(fit.program.level.value) < 0.96 * std::log(1.3));
  CHECK(fit.runs.front().computing > 0.97);
  CHECK(std::abs(fit.runs.front().after.error) < 0.03);
  WhatIf other = computing_run();
  other["grad_accum"] = "8";
  other["seq_len"] = "512";
  const auto width = [](const WhatIf& run) {
    const SourceResult result = replay_figures({step_of(run, 1)}).front();
    return std::log(*result.high / *result.low);
  };
  CHECK(width(with(other, fit.program)) < 0.85 * width(other));
  CHECK(forecast_s(with(other, fit.program)) > 1.2 * forecast_s(other));
}

TEST_CASE("program level: consistent runs narrow its interval, contradicting runs widen it") {
  const double before = forecast_s(computing_run());
  const auto width = [](const LevelFit& fit) { return fit.program.high / fit.program.low; };
  const SourceFigure slower = step_of(computing_run(), 1.2 * before);
  const double one = width(fit_level({slower}));
  CHECK(width(fit_level({slower, slower, slower})) < one);
  CHECK(width(fit_level({slower, step_of(computing_run(), 1.8 * before)})) > one);
  // The spread of further runs about the level changes likewise: three agreeing runs reduce 0.05 by
  // a factor of sqrt(4 / 6).
  CHECK(fit_level({slower}).program.spread == 0);
  CHECK(fit_level({slower, slower, slower}).program.spread == Approx(0.041).margin(0.002));
  CHECK(fit_level({slower, step_of(computing_run(), 1.8 * before)}).program.spread > 0.07);
}

TEST_CASE("program level: steps that wait for their network set no level") {
  WhatIf waiting{{"model", "bert-large"}, {"cluster", "commodity-10gbe"}, {"gpus", "64"},
                 {"optimizer", "lamb"},   {"micro_batch", "1"},           {"grad_accum", "1"},
                 {"steps", "1"}};
  CHECK_THROWS_WITH(fit_level({step_of(waiting, 2 * forecast_s(waiting))}),
                    Catch::Contains("computing makes"));
}

TEST_CASE("program level: a share of the GPU's peak is a measured step like any other") {
  SourceFigure share = step_of(computing_run(), 1);
  share.quantity = Quantity::mfu_pct;
  share.measured = replay_figures({share}).front().forecast / 1.3;
  const LevelFit by_time = fit_level({step_of(computing_run(), 1.3 * forecast_s(computing_run()))});
  CHECK(fit_level({share}).program.level.value == Approx(by_time.program.level.value));
}

TEST_CASE("program level: an implausible step is refused, with its distance from the forecast") {
  const double forecast = forecast_s(computing_run());
  for (const double factor : {0.1, 12.9})
    CHECK_THROWS_WITH(fit_level({step_of(computing_run(), factor * forecast)}),
                      Catch::Contains(fmt::format("{:.3g} times as long as forecast", factor)));
}

TEST_CASE("program level: runs of two programs are refused, and so is memory without times") {
  WhatIf other = computing_run();
  other["framework"] = "deepspeed";
  CHECK_THROWS_WITH(fit_level({step_of(computing_run(), 1), step_of(other, 1)}),
                    Catch::Contains("one program"));
  SourceFigure memory = step_of(computing_run(), 40);
  memory.quantity = Quantity::memory_gib;
  CHECK_THROWS_WITH(fit_level({memory}), Catch::Contains("gives only memory"));
}

TEST_CASE("program level: a description with a level is read back; other programs get a finding") {
  const ProgramLevel level{"megatron", "half", {1.25, {Kind::fitted, "one run"}}, 1.1, 1.4};
  const std::string text = validate::cluster_with_program(cluster_text("hgx-h100-ndr"),
                                                          "hgx-h100-ndr.toml", "mine", "", level);
  const Cluster cluster = decode_cluster(Table::parse(text, "mine.toml"), "mine.toml");
  REQUIRE(cluster.program);
  CHECK(*cluster.program == level);
  CHECK(cluster.calibration == load_cluster("hgx-h100-ndr", {}).calibration);

  Catalog catalog(std::make_shared<DescriptionTexts>());
  CHECK(resolve(with(computing_run(), level), catalog).training.program);
  WhatIf other = with(computing_run(), level);
  other["framework"] = "torchtitan";
  const Scenario scenario = resolve(other, catalog);
  CHECK_FALSE(scenario.training.program);
  CHECK(std::ranges::any_of(scenario.findings, [](const Finding& finding) {
    return finding.code == "program-not-measured";
  }));
}

}  // namespace
}  // namespace lambcast
