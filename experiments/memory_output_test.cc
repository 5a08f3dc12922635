#include "experiments/memory_output.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "experiments/cell.h"
#include "experiments/scenario_case.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;
using Json = nlohmann::json;

TrainingPlan plan(const WhatIf& changes) {
  return resolved(with(changes, without({"freeze_step"}))).training;
}

TEST_CASE("memory: told by part and by stage of a pipeline, the fullest as its peak") {
  const TrainingPlan training =
      plan({{"optimizer", "lamb"}, {"cluster", "dgx-a100-80g"}, {"pp", "4"}});
  const MemoryForecast memory = forecast_memory(training);
  const Json json = Json::parse(memory_json(training, memory));
  REQUIRE(json.at("stages").size() == 4);
  Json fullest = json.at("stages")[0];
  std::string peaks;
  for (const Json& stage : json.at("stages")) {
    double sum = 0;
    for (const auto& [part, bytes] : stage.at("parts").items()) sum += bytes.get<double>();
    CHECK(sum == Approx(stage.at("peak_bytes_per_gpu").get<double>()));
    if (stage.at("peak_bytes_per_gpu") > fullest.at("peak_bytes_per_gpu")) fullest = stage;
    peaks += (peaks.empty() ? "" : ", ") +
             bytes_cell(Bytes(stage.at("peak_bytes_per_gpu").get<double>()));
  }
  CHECK(json.at("peak_bytes_per_gpu") == fullest.at("peak_bytes_per_gpu"));
  CHECK(json.at("parts") == fullest.at("parts"));
  CHECK_THAT(memory_text(training, memory),
             Contains("\n  by stage of the pipeline: " + peaks + "\n"));
}

TEST_CASE("memory: without a pipeline there is one stage, and no line of it") {
  const TrainingPlan training = plan({{"optimizer", "lamb"}});
  const MemoryForecast memory = forecast_memory(training);
  const Json json = Json::parse(memory_json(training, memory));
  REQUIRE(json.at("stages").size() == 1);
  CHECK(json.at("stages")[0].at("parts") == json.at("parts"));
  CHECK(json.at("fits") == memory.fits);
  CHECK_THAT(memory_text(training, memory), !Contains("by stage"));
}

}  // namespace
}  // namespace lambcast
