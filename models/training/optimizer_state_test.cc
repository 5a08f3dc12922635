#include "models/training/optimizer_state.h"

#include <catch2/catch.hpp>

#include "models/shape/load.h"
#include "models/training/training_case.h"

namespace lambcast {
namespace {

TEST_CASE("optimizer states: bytes per element of a whole model") {
  const ModelShape bert = load_model("bert-large");
  const auto bytes = [&](OptimizerType type) { return state_bytes_per_element(type, bert); };
  CHECK(bytes(OptimizerType::onebit_lamb) == 8);
  CHECK(bytes(OptimizerType::lars) == 4);
  // Rows and columns of matrices of 1,024: 4 (1/1024 + 1/1024 or less), and whole vectors.
  CHECK(bytes(OptimizerType::adafactor) > 4.0 / 1024);
  CHECK(bytes(OptimizerType::adafactor) < 0.015);
  CHECK(bytes(OptimizerType::came) - 4 == Approx(2 * bytes(OptimizerType::adafactor)).epsilon(0.3));
  CHECK(bytes(OptimizerType::galore_adamw8bit) < 2);
}

TEST_CASE("optimizer states: GaLore projects in every step and decomposes in each 200th") {
  TrainingPlan training = training_of({OptimizerType::galore_adamw8bit});
  training.steps = 1000;
  const std::vector<RunStage> stages = run_stages(training);
  REQUIRE(stages.size() == 2);
  CHECK(stages[0].steps == 995);
  CHECK(stages[1].kind == StepKind::refresh);
  CHECK(stages[1].steps == 5);
  const StepMetrics usual = metrics_of(training, StepKind::uniform);
  const StepMetrics refresh = metrics_of(training, StepKind::refresh);
  CHECK(refresh.optimizer > usual.optimizer * 10);
  CHECK(refresh.wire_bytes_per_gpu == usual.wire_bytes_per_gpu);
}

TEST_CASE("optimizer states: scalars of shared tensors cross one call after another") {
  const ModelShape bert = load_model("bert-large");
  const auto tensors = static_cast<double>(optimized_tensor_count(bert));
  const auto extras = [&](OptimizerType type, bool shared) {
    return update_extras(type, StepKind::uniform, bert, 1, shared);
  };
  CHECK(extras(OptimizerType::distributed_lamb, true).calls == tensors);
  CHECK(extras(OptimizerType::came, true).calls == 3 * tensors);
  CHECK(extras(OptimizerType::distributed_lamb, false).calls == 0);
  CHECK(extras(OptimizerType::lamb, true).calls == 0);
  CHECK(extras(OptimizerType::galore_adamw8bit, true).products.size() == 1);
}

}  // namespace
}  // namespace lambcast
