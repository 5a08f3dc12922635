#include "experiments/sweep/result_row.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "experiments/scenario/scenario.h"
#include "experiments/sweep/result_cells.h"
#include "models/training/run/forecast.h"

namespace lambcast {
namespace {

TEST_CASE("csv: the counts of all kinds of steps add up to those of the run") {
  for (const WhatIf& asked : {WhatIf{{"optimizer", "galore_adamw8bit"}, {"exchange", "all_reduce"}},
                              WhatIf{{"optimizer", "adam"}, {"exchange", "local:16"}},
                              WhatIf{{"optimizer", "zero_one_adam"}, {"precision", "fp32"}}}) {
    WhatIf what_if{{"model", "bert-large"},
                   {"cluster", "hgx-h100-ndr"},
                   {"gpus", "16"},
                   {"micro_batch", "16"},
                   {"steps", "1000"}};
    what_if.insert(asked.begin(), asked.end());
    Catalog catalog;
    CollectiveCosts costs;
    const Scenario scenario = resolve(what_if, catalog);
    const Forecast result = forecast(scenario.training, costs);
    const std::vector<std::string> row = cells_of(result_row(scenario, result, {}));
    int steps = 0;
    double seconds = 0;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string& column = result_columns()[i];
      if (!column.ends_with("_steps") || row[i].empty()) continue;
      const std::string time = column.substr(0, column.size() - 1) + "_time_us";
      const auto at = std::find(result_columns().begin(), result_columns().end(), time);
      steps += std::stoi(row[i]);
      seconds +=
          std::stod(row[i]) * std::stod(row[std::size_t(at - result_columns().begin())]) * 1e-6;
    }
    INFO(what_if.at("optimizer"));
    CHECK(steps == 1000);
    CHECK(seconds == Approx(result.run.time_s).epsilon(1e-6));
  }
}

TEST_CASE("csv: an infeasible point keeps its settings") {
  const auto row =
      cells_of(infeasible_row({{"model", "x"}, {"gpus", "8"}, {"freeze_step", "10%"}}, "why"));
  REQUIRE(row.size() == result_columns().size());
  std::map<std::string, std::string> filled;
  for (std::size_t i = 0; i < row.size(); ++i)
    if (!row[i].empty()) filled[result_columns()[i]] = row[i];
  CHECK(filled ==
        std::map<std::string, std::string>{
            {"model", "x"}, {"gpus", "8"}, {"freeze_step", "10%"}, {"status", "infeasible: why"}});
}

}  // namespace
}  // namespace lambcast
