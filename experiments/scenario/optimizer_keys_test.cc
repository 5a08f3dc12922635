// Tests keys and file settings of single optimizers, from the what-if to the forecast.
#include <algorithm>
#include <utility>

#include "experiments/scenario/scenario_case.h"
#include "models/training/run/forecast.h"

namespace lambcast {
namespace {

using Catch::Contains;

std::int64_t said(const WhatIf& asked, const char* code) {
  return std::ranges::count(resolved(asked).findings, code, &Finding::code);
}

TEST_CASE("optimizer keys: weight decay changes the forecast, or is reported without effect") {
  std::size_t moved = 0;
  for (const OptimizerModel* optimizer : optimizer_models())
    for (const char* kernels : {"deepspeed", "fused"}) {
      WhatIf asked = with({{"optimizer", std::string(optimizer->name)},
                           {"kernels", kernels},
                           {"model", "llama2-7b"}});
      if (optimizer->onebit) asked["freeze_step"] = "10%";
      INFO(optimizer->name << " with kernels " << kernels);
      const auto run_s = [&](const char* decay) {
        CollectiveCosts costs;
        return forecast(resolved(with({{"weight_decay", decay}}, asked)).training, costs)
            .run.time_s;
      };
      const bool moves = run_s("0") != run_s("0.01");
      CHECK(run_s("0") <= run_s("0.01"));
      const auto findings = resolved(with({{"weight_decay", "0"}}, asked)).findings;
      CHECK(moves == std::ranges::none_of(findings, [](const Finding& finding) {
              return finding.message.starts_with("--weight-decay: has no effect");
            }));
      moved += moves ? 1 : 0;
    }
  CHECK(moved >= 5);
}

TEST_CASE("optimizer keys: 0/1 Adam's policy can be set, without effect on other optimizers") {
  const WhatIf zero_one = with({{"optimizer", "zero_one_adam"}, {"freeze_step", "1000"}});
  const auto compressed = [&](const WhatIf& keys) {
    CollectiveCosts costs;
    const Forecast of = forecast(resolved(with(keys, zero_one)).training, costs);
    std::int64_t onebit = 0, silent = 0;
    for (const StepForecast& step : of.steps) {
      if (counted_as(step.kind) == StepKind::compression) onebit += step.steps;
      if (step.kind == StepKind::silent) silent += step.steps;
    }
    return std::pair(onebit, silent);
  };
  const auto usual = compressed({});
  CHECK(compressed({{"var_update_scaler", "100000"}}).first < usual.first);
  CHECK(compressed({{"local_step_scaler", "100"}}).second > usual.second);
  CHECK(compressed({{"local_step_scaler", "100"}, {"local_step_clipper", "2"}}).second <
        compressed({{"local_step_scaler", "100"}}).second);
  for (const char* key : {"var_update_scaler", "local_step_scaler", "local_step_clipper"}) {
    INFO(key);
    CHECK(said(with({{key, "8"}}, zero_one), "flag-no-effect") == 0);
    CHECK(said(with({{key, "8"}}), "flag-no-effect") == 1);
    CHECK_THAT(refusal(with({{key, "0"}}, zero_one)), Contains("'0' is not a whole number"));
  }
}

TEST_CASE("optimizer keys: the frequency of decompositions is SOAP's and Shampoo's alone") {
  const auto asked = [](const char* optimizer, const WhatIf& keys) {
    return with(keys, without({"freeze_step"}, {{"optimizer", optimizer}}));
  };
  const auto run_s = [&](const char* optimizer, const char* every) {
    CollectiveCosts costs;
    return forecast(resolved(asked(optimizer, {{"precondition_frequency", every}})).training, costs)
        .run.time_s;
  };
  for (const auto& [optimizer, usual] : {std::pair("soap", "10"), {"shampoo", "100"}}) {
    INFO(optimizer);
    CollectiveCosts costs;
    CHECK(run_s(optimizer, usual) ==
          forecast(resolved(asked(optimizer, {})).training, costs).run.time_s);
    CHECK(run_s(optimizer, "1") > run_s(optimizer, usual));
    CHECK(said(asked(optimizer, {{"precondition_frequency", "8"}}), "flag-no-effect") == 0);
  }
  for (const char* optimizer : {"muon", "dion", "adam"})
    CHECK(said(asked(optimizer, {{"precondition_frequency", "8"}}), "flag-no-effect") == 1);
}

TEST_CASE("optimizer keys: a rank that leaves GaLore's matrices whole is reported") {
  const auto asked = [](const char* model, const char* rank) {
    return without({"freeze_step"}, {{"optimizer", "galore_adamw8bit"},
                                     {"model", model},
                                     {"micro_batch", "1"},
                                     {"galore_rank", rank}});
  };
  CHECK(said(asked("bert-large", "256"), "galore-whole") == 0);
  CHECK(said(asked("bert-large", "1023"), "galore-whole") == 0);
  CHECK(said(asked("bert-large", "1024"), "galore-whole") == 1);
  CHECK(said(with({{"optimizer", "adam"}}, asked("bert-large", "1024")), "galore-whole") == 0);
}

}  // namespace
}  // namespace lambcast
