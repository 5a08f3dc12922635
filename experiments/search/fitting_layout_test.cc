#include "experiments/search/fitting_layout.h"

#include <catch2/catch.hpp>
#include <sstream>

#include "experiments/scenario/scenario_case.h"
#include "models/training/memory/memory.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

WhatIf run_of(const char* model, const WhatIf& changes = {}) {
  WhatIf asked{{"model", model},      {"cluster", "dgx-a100-80g"},
               {"gpus", "64"},        {"optimizer", "adam"},
               {"precision", "bf16"}, {"global_batch", "128"},
               {"micro_batch", "1"},  {"steps", "100"}};
  for (const auto& [key, value] : changes) asked.insert_or_assign(key, value);
  return asked;
}

std::vector<std::string> layouts_for(const WhatIf& asked) {
  Catalog catalog;
  return fitting_layouts(resolve(asked, catalog), catalog);
}

// Returns the what-if with the flags of "--tp 8 --pp 2 (61.2 GB)".
WhatIf with_flags(WhatIf asked, const std::string& remedy) {
  std::istringstream words(remedy.substr(0, remedy.find(" (")));
  for (std::string name, value; words >> name >> value;) {
    std::string key = name.substr(2);
    for (char& c : key)
      if (c == '-') c = '_';
    asked.insert_or_assign(key, value);
  }
  return asked;
}

TEST_CASE("fitting layout: every size that is named fits, as forecast with its flags") {
  for (const WhatIf& asked :
       {run_of("llama2-70b"), run_of("gpt3-175b"), with({{"grad_accum", "2"}}, [] {
          WhatIf other = run_of("llama2-70b");
          other.erase("global_batch");
          return other;
        }())}) {
    const std::vector<std::string> remedies = layouts_for(asked);
    CHECK_FALSE(remedies.empty());
    for (const std::string& remedy : remedies) {
      INFO(remedy);
      Catalog catalog;
      const TrainingPlan training = resolve(with_flags(asked, remedy), catalog).training;
      const MemoryForecast memory = forecast_memory(training);
      CHECK(memory.fits);
      CHECK(memory.high() <= training.device->memory_capacity);
      CHECK(training.batch.train == 128);
      CHECK_THAT(remedy, Contains("(" + to_text(memory.peak) + ")"));
    }
  }
}

TEST_CASE("fitting layout: a size that just fits is named if none fits at the high end") {
  const WhatIf asked = run_of("gpt3-175b", {{"gpus", "40"}, {"global_batch", "80"}});
  const std::vector<std::string> remedies = layouts_for(asked);
  REQUIRE(remedies.size() == 1);
  CHECK_THAT(remedies.front(), Contains("--recompute full"));
  CHECK_THAT(remedies.front(), Contains("--zero-stage 3"));
  Catalog catalog;
  const TrainingPlan training = resolve(with_flags(asked, remedies.front()), catalog).training;
  CHECK(forecast_memory(training).high() > training.device->memory_capacity);
}

TEST_CASE("fitting layout: the smallest change keeps the GPUs if it can, and fits with its flags") {
  const auto change_of = [](const WhatIf& asked) {
    Catalog catalog;
    return smallest_change(resolve(asked, catalog), catalog);
  };
  CHECK(change_of(run_of("bert-large")).empty());
  CHECK_THAT(change_of(run_of("llama2-7b")), Contains("--zero-stage"));
  CHECK_THAT(change_of(run_of("gpt3-175b")), Contains("--tp") || Contains("--zero-stage 3"));
  // 350 GB of weights in bf16 do not fit into eight GPUs of 40 GB.
  const WhatIf few = run_of("gpt3-175b", {{"gpus", "8"}, {"device", "a100-40g"}});
  CHECK_THAT(change_of(few), Contains("--gpus"));
  for (const WhatIf& asked : {run_of("llama2-7b"), run_of("gpt3-175b"), few}) {
    Catalog catalog;
    const WhatIf changed = with_flags(asked, change_of(asked));
    CHECK(forecast_memory(resolve(changed, catalog).training).fits);
  }
}

TEST_CASE("fitting layout: nothing is proposed if a run fits, has a layout, or needs less") {
  CHECK(layouts_for(run_of("bert-large")).empty());
  CHECK(layouts_for(run_of("gpt3-175b", {{"tp", "8"}})).empty());
  // ZeRO stages 1 and 2 are enough.
  CHECK(layouts_for(run_of("llama2-7b")).empty());
}

}  // namespace
}  // namespace lambcast
