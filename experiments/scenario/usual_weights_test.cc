#include <catch2/catch.hpp>

#include "experiments/scenario/deepspeed_choice.h"
#include "experiments/scenario/scenario_case.h"

namespace lambcast {
namespace {

TEST_CASE("scenario: a precision that is not stated is the usual one of the model") {
  const auto weights = [](const char* model, const char* cluster, const char* optimizer,
                          const WhatIf& more = {}) {
    WhatIf asked{{"model", model}, {"cluster", cluster}, {"gpus", "8"}, {"optimizer", optimizer}};
    asked.insert({{"micro_batch", "1"}, {"grad_accum", "1"}, {"steps", "10000"}});
    return resolved(with(more, asked)).training.recipe.precision.weights;
  };
  CHECK(weights("llama2-7b", "hgx-h100-ndr", "adamw") == DataType::bf16);
  CHECK(weights("mixtral-8x7b", "dgx-a100-80g", "adamw") == DataType::bf16);
  CHECK(weights("llama2-7b", "dgx2-v100", "adamw") == DataType::fp16);  // V100 has no bf16
  CHECK(weights("llama2-7b", "hgx-h100-ndr", "onebit_adam", {{"freeze_step", "1000"}}) ==
        DataType::fp16);
  CHECK(weights("gpt2", "hgx-h100-ndr", "adamw") == DataType::fp16);
  CHECK(weights("llama2-7b", "hgx-h100-ndr", "adamw", {{"precision", "fp16"}}) == DataType::fp16);
}

}  // namespace
}  // namespace lambcast
