#include "experiments/scenario/whole_model.h"

#include <catch2/catch.hpp>

#include "experiments/scenario/scenario_case.h"
#include "models/training/price/one_hot_dispatch.h"
#include "models/training/run/forecast.h"

namespace lambcast {
namespace {

WhatIf whole_model(const WhatIf& changes) {
  return with(changes, {{"model", "bert-large"},
                        {"cluster", "dgx-a100-80g"},
                        {"gpus", "16"},
                        {"optimizer", "adamw"},
                        {"micro_batch", "4"},
                        {"grad_accum", "2"},
                        {"steps", "10"}});
}

TEST_CASE("whole model: DeepSpeed without a divided model has no layout") {
  const auto of = [](const WhatIf& changes) { return resolved(whole_model(changes)).training; };
  for (const WhatIf& usual : {WhatIf{{"recompute", "none"}}, {{"fusion", "fused"}}}) {
    CHECK_FALSE(of(usual).parallelism.has_value());
    CHECK_FALSE(of(usual).passes.has_value());
  }
  for (const WhatIf& other : {WhatIf{{"recompute", "full"}}, {{"fusion", "eager"}}}) {
    CHECK_FALSE(of(other).parallelism.has_value());
    CHECK(of(other).passes.has_value());
  }
  for (const WhatIf& divided : {WhatIf{{"recompute", "full"}, {"tp", "2"}},
                                {{"zero_stage", "3"}},
                                {{"zero_stage", "1"}, {"shard_ranks", "8"}},
                                {{"framework", "megatron"}}})
    CHECK(of(divided).parallelism.has_value());
  CHECK(of({{"gradient_bucket", "1000000"}, {"zero_stage", "2"}}).recipe.zero.bucket == 1'000'000);
}

TEST_CASE("whole model: recomputing blocks takes longer and needs less memory") {
  // bert-large was timed on both GPUs, gpt2-xl on neither of them.
  for (const char* cluster : {"dgx2-v100", "dgx-a100-80g"})
    for (const char* model : {"bert-large", "gpt2-xl"})
      for (const char* stage : {"0", "2"}) {
        INFO(model << " on " << cluster << ", ZeRO stage " << stage);
        const WhatIf asked{{"model", model},      {"cluster", cluster}, {"gpus", "8"},
                           {"zero_stage", stage}, {"micro_batch", "4"}, {"grad_accum", "2"},
                           {"optimizer", "adam"}, {"steps", "10"}};
        CollectiveCosts costs;
        const Forecast once = forecast(resolved(asked).training, costs);
        const Forecast again =
            forecast(resolved(with({{"recompute", "full"}}, asked)).training, costs);
        const StepForecast &usual = once.steps.front(), &longer = again.steps.front();
        CHECK(longer.forward_us == Approx(usual.forward_us));
        CHECK(longer.backward_us > 1.2 * usual.backward_us);
        CHECK(longer.backward_us < 1.6 * usual.backward_us);
        CHECK(longer.step_time_us > usual.step_time_us);
        CHECK(again.memory.peak < once.memory.peak);
      }
}

TEST_CASE("whole model: experts routed without one-hot tensors get no warning about them") {
  const WhatIf asked = whole_model({{"model", "switch-base-64"}, {"micro_batch", "64"}});
  CHECK(find_one_hot_dispatch(resolved(asked).training));
  CHECK_FALSE(
      find_one_hot_dispatch(resolved(with({{"expert_routing", "sparse"}}, asked)).training));
}

}  // namespace
}  // namespace lambcast
