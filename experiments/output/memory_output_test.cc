#include "experiments/output/memory_output.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <sstream>

#include "experiments/output/cell.h"
#include "experiments/scenario/scenario_case.h"
#include "models/training/memory/memory_remedy.h"
#include "sim/base/json.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;
TrainingPlan plan_of_changes(const WhatIf& changes) {
  return resolved(with(changes, without({"freeze_step"}))).training;
}

TEST_CASE("memory: listed by part and by stage of a pipeline, with the largest stage as the peak") {
  const TrainingPlan training =
      plan_of_changes({{"optimizer", "lamb"}, {"cluster", "dgx-a100-80g"}, {"pp", "4"}});
  const MemoryForecast memory = forecast_memory(training);
  const Json json = memory_json(training, memory);
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

TEST_CASE("memory: without a pipeline there is one stage, and no line for it") {
  const TrainingPlan training = plan_of_changes({{"optimizer", "lamb"}});
  const MemoryForecast memory = forecast_memory(training);
  const Json json = memory_json(training, memory);
  REQUIRE(json.at("stages").size() == 1);
  CHECK(json.at("stages")[0].at("parts") == json.at("parts"));
  CHECK(json.at("fits") == memory.fits);
  CHECK_THAT(memory_text(training, memory), !Contains("by stage"));
}

// Parses a remedy such as "--recompute full --micro-batch 1 (61.0 GB)" into a what-if.
WhatIf flags_of(const std::string& remedy) {
  WhatIf flags;
  std::istringstream words(remedy.substr(0, remedy.find(" (")));
  for (std::string key, value; words >> key >> value;) {
    std::replace(key.begin(), key.end(), '-', '_');
    flags.emplace(key.substr(2), value);
  }
  return flags;
}

WhatIf too_large(const WhatIf& changes) {
  return with(changes, {{"model", "llama2-70b"},
                        {"cluster", "hgx-h100-ndr"},
                        {"gpus", "64"},
                        {"optimizer", "adamw"},
                        {"precision", "bf16"},
                        {"seq_len", "4096"},
                        {"global_batch", "1024"},
                        {"steps", "10"}});
}

TEST_CASE("memory: the flags of a remedy give a run that fits, and none is set already") {
  const std::pair<WhatIf, const char*> cases[] = {
      {{{"framework", "torchtitan"}, {"zero_stage", "3"}, {"micro_batch", "16"}},
       "--recompute full --micro-batch"},
      {{{"framework", "megatron"}, {"zero_stage", "1"}, {"micro_batch", "4"}, {"tp", "2"}},
       "--recompute full --zero-stage 3 ("},
      {{{"framework", "deepspeed"}, {"zero_stage", "3"}, {"micro_batch", "16"}},
       "--recompute full --micro-batch"},
      {{{"framework", "deepspeed"}, {"zero_stage", "1"}, {"micro_batch", "2"}, {"pp", "4"}},
       "--tp "},
      {{{"framework", "deepspeed"},
        {"zero_stage", "1"},
        {"micro_batch", "2"},
        {"pp", "4"},
        {"grad_accum", "32"}},
       "--grad-accum "},
      {{{"framework", "colossalai"}, {"zero_stage", "1"}, {"micro_batch", "2"}},
       "--tp 8 --micro-batch 1"},
      {{{"plugin", "low_level_zero"}, {"model", "llama2-13b"}, {"micro_batch", "16"}},
       "--recompute full"},
      {{{"plugin", "torch_ddp"}, {"model", "llama3-8b"}, {"micro_batch", "1"}}, "--device "},
      {{{"framework", "deepspeed"},
        {"model", "llama2-70b"},
        {"gpus", "8"},
        {"zero_stage", "3"},
        {"recompute", "full"},
        {"micro_batch", "1"}},
       "--offload-optimizer cpu ("},
      {{{"model", "mixtral-8x7b"},
        {"framework", "megatron"},
        {"zero_stage", "1"},
        {"micro_batch", "1"},
        {"recompute", "full"}},
       "--ep "}};
  for (const auto& [changes, expected] : cases) {
    WhatIf asked = too_large(changes);
    if (asked.contains("grad_accum")) asked.erase("global_batch");
    const TrainingPlan training = resolved(asked).training;
    REQUIRE_FALSE(forecast_memory(training).fits);
    std::string all;
    for (const std::string& remedy : memory_remedies(training)) {
      INFO(remedy);
      all += remedy + "; ";
      const WhatIf flags = flags_of(remedy);
      for (const auto& [key, value] : flags)
        CHECK((!asked.contains(key) || asked.at(key) != value));
      const TrainingPlan fits = resolved(with(flags, asked)).training;
      CHECK(forecast_memory(fits).fits);
      CHECK(fits.batch.train == training.batch.train);
      CHECK_THAT(remedy, Contains(to_text(forecast_memory(fits).peak)));
    }
    CHECK_THAT(all, Contains(expected));
  }
}

TEST_CASE("memory: if no remedy fits, no flag is proposed") {
  const WhatIf asked = too_large({{"model", "gpt3-175b"},
                                  {"gpus", "8"},
                                  {"seq_len", "2048"},
                                  {"framework", "torchtitan"},
                                  {"zero_stage", "3"},
                                  {"micro_batch", "1"}});
  const std::string text = how_to_fit(resolved(asked).training);
  CHECK_THAT(text, Contains("that was tried fits on 8 GPUs"));
  CHECK_THAT(text, !Contains("--zero-stage 3"));
}

}  // namespace
}  // namespace lambcast
