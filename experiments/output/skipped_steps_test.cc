#include "experiments/output/skipped_steps.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <tuple>

#include "experiments/output/judgement.h"
#include "experiments/scenario/scenario_case.h"
#include "experiments/sweep/result_cells.h"
#include "experiments/sweep/result_row.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("skipped steps: a plain run states how many its steps include, and adds none") {
  const auto judged = [](const WhatIf& changes) {
    Catalog catalog;
    CollectiveCosts costs;
    const Scenario scenario = resolve(with(changes, without({"freeze_step"})), catalog);
    const Forecast result = forecast(scenario.training, costs);
    const Judgement judgement = judgement_of(scenario, result);
    std::string sentence;
    for (const Finding& finding : judgement.findings)
      if (finding.code == "skipped-steps") sentence = finding.message;
    const auto row = cells_of(result_row(scenario, result, judgement));
    const auto& columns = result_columns();
    const auto at = std::ranges::find(columns, "steps_skipped") - columns.begin();
    return std::tuple(sentence, row.at(static_cast<std::size_t>(at)), result.run.time_s);
  };
  const WhatIf adam{{"optimizer", "adam"}, {"steps", "5993"}};
  WhatIf half = adam, brain = adam;
  half["precision"] = "fp16";
  brain["precision"] = "bf16";
  const auto [sentence, count, seconds] = judged(half);
  CHECK_THAT(sentence, Contains("about 6 of 5993 updates (one in 1000)"));
  CHECK_THAT(sentence, Contains("a scale of 2^16"));
  CHECK(count == "5.993");
  const auto [none, zero, as_long] = judged(brain);
  CHECK(none.empty());
  CHECK(zero == "0");
}

}  // namespace
}  // namespace lambcast
