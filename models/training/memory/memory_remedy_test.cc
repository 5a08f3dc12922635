#include "models/training/memory/memory_remedy.h"

#include <catch2/catch.hpp>

#include "models/training/memory/memory.h"
#include "models/training/run/training_case.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::Equals;
using Catch::Matchers::StartsWith;

TrainingPlan too_large(OptimizerType type, const char* model, std::int64_t micro,
                       std::int64_t gas) {
  TrainingPlan training = training_of({type, 64, "dgx-a100-80g", model});
  training.batch = {64 * micro * gas, micro, gas};
  REQUIRE_FALSE(forecast_memory(training).fits);
  return training;
}

// Returns the number after a flag of a remedy.
std::int64_t after(const std::string& remedy, const std::string& flag) {
  const auto at = remedy.find(flag + " ");
  REQUIRE(at != std::string::npos);
  return std::stoll(remedy.substr(at + flag.size() + 1));
}

TEST_CASE("memory remedy: the largest micro batch that fits, and the batch stays") {
  for (const std::int64_t gas : {1, 3, 7}) {
    const TrainingPlan training = too_large(OptimizerType::lamb, "bert-large", 4096, gas);
    const std::vector<std::string> remedies = memory_remedies(training);
    REQUIRE_FALSE(remedies.empty());
    const std::int64_t micro = after(remedies[0], "--micro-batch");
    CHECK(micro * after(remedies[0], "--grad-accum") == 4096 * gas);
    TrainingPlan with = training;
    with.batch.micro = micro;
    CHECK(forecast_memory(with).fits);
    CHECK_THAT(remedies[0], Contains(to_text(forecast_memory(with).peak)));
    for (std::int64_t more = micro + 1; more <= 4096; ++more) {
      with.batch.micro = more;
      if (4096 * gas % more == 0 && forecast_memory(with).fits) FAIL(more << " fits too");
    }
  }
}

TEST_CASE("memory remedy: a micro batch that is smaller by one sample, if it fits") {
  TrainingPlan training = training_of({OptimizerType::lamb, 64, "dgx-a100-80g", "bert-large"});
  while (forecast_memory(training).fits) ++training.batch.micro;
  const std::int64_t fits = training.batch.micro - 1;
  training.batch.gas = fits;
  CHECK(after(memory_remedies(training).at(0), "--micro-batch") == fits);
}

TEST_CASE("memory remedy: every flag named was forecast to fit") {
  // Weights and states alone exceed the memory: only dividing them helps.
  TrainingPlan training = too_large(OptimizerType::adamw, "llama2-7b", 1, 4);
  const std::vector<std::string> remedies = memory_remedies(training);
  REQUIRE_FALSE(remedies.empty());
  CHECK_THAT(remedies[0], StartsWith("--zero-stage "));
  training.recipe.zero.stage = after(remedies[0], "--zero-stage");
  CHECK(forecast_memory(training).fits);

  // A stage that does not suffice on its own is combined with a smaller micro batch.
  training = too_large(OptimizerType::adamw, "llama2-7b", 1024, 1);
  training.recipe.zero.stage = 0;
  const std::string both = memory_remedies(training).at(0);
  training.recipe.zero.stage = after(both, "--zero-stage");
  CHECK_FALSE(forecast_memory(training).fits);
  training.batch.micro = after(both, "--micro-batch");
  CHECK(forecast_memory(training).fits);
}

TEST_CASE("memory remedy: stage 2, where stage 1 is not enough") {
  TrainingPlan training = training_of({OptimizerType::adamw, 64, "dgx-a100-80g", "llama2-7b"});
  training.recipe.zero.stage = 2;
  Device device = *training.device;
  device.memory_capacity = forecast_memory(training).peak;
  training.device = std::make_shared<const Device>(device);
  training.recipe.zero.stage = 1;
  REQUIRE_FALSE(forecast_memory(training).fits);
  CHECK_THAT(memory_remedies(training).at(0), StartsWith("--zero-stage 2 ("));
}

TEST_CASE("memory remedy: no stage is named that the framework lacks") {
  for (const auto& [name, most] :
       {std::pair(FrameworkName::megatron, 3), {FrameworkName::colossalai, 2}}) {
    TrainingPlan training = training_of({OptimizerType::adamw, 8, "dgx-a100-80g", "gpt3-175b"});
    Parallelism how;
    how.layout.dp = how.layout.gpus_per_node = 8;
    how.framework = framework_of(name);
    training.parallelism = how;
    Device device = *training.device;
    for (double share = 1; share > 0.01; share /= 1.5) {
      device.memory_capacity = forecast_memory(training).peak * share;
      training.device = std::make_shared<const Device>(device);
      for (const std::string& remedy : memory_remedies(training))
        if (remedy.starts_with("--zero-stage ")) CHECK(after(remedy, "--zero-stage") <= most);
    }
  }
}

TEST_CASE("memory remedy: a larger GPU, if there is one") {
  TrainingPlan training = training_of({OptimizerType::onebit_lamb, 64});
  training.batch = {64 * 64, 64, 1};
  REQUIRE_FALSE(forecast_memory(training).fits);
  const std::string last = memory_remedies(training).back();
  CHECK_THAT(last, StartsWith("--device "));
  training.device =
      std::make_shared<const Device>(load_device(last.substr(9, last.find(' ', 9) - 9)));
  CHECK(forecast_memory(training).fits);
  for (const std::string& name : device_names()) {
    const Device other = load_device(name);
    if (other.memory_capacity < training.device->memory_capacity)
      CHECK(other.memory_capacity < forecast_memory(training).peak);
  }
}

TEST_CASE("memory remedy: nothing helps a model that must be divided") {
  const TrainingPlan training = too_large(OptimizerType::onebit_adam, "gpt3-175b", 1, 1);
  CHECK(memory_remedies(training).empty());
  CHECK_THAT(how_to_fit(training),
             Contains("even --micro-batch 1 needs") &&
                 Contains("which DeepSpeed cannot divide among ranks with onebit_adam") &&
                 Contains("divided among GPUs: --tp or --pp"));
}

}  // namespace
}  // namespace lambcast
