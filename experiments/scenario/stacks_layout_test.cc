#include <catch2/catch.hpp>

#include "experiments/scenario/scenario.h"
#include "models/training/run/forecast.h"

namespace lambcast {
namespace {

WhatIf swin(const WhatIf& changes) {
  WhatIf what_if{{"model", "swinv2-moe-base"},
                 {"cluster", "azure-ndm-a100-v4"},
                 {"gpus", "8"},
                 {"framework", "pytorch"},
                 {"optimizer", "adamw"},
                 {"micro_batch", "8"},
                 {"ep", "8"},
                 {"steps", "10"}};
  for (const auto& [key, value] : changes) what_if.insert_or_assign(key, value);
  return what_if;
}

TrainingPlan image_plan(const WhatIf& changes) {
  Catalog catalog;
  return resolve(swin(changes), catalog).training;
}

TEST_CASE("stacks: only data are divided for pyramids of images and PyTorch's modules") {
  const std::pair<WhatIf, const char*> refused[] = {
      {{{"tp", "2"}}, "stages of an image"},
      {{{"framework", "megatron"}, {"pp", "2"}}, "stages of an image"},
      {{{"model", "gpt2"}, {"ep", "1"}, {"tp", "2"}}, "pytorch is forecast as data parallelism"},
      {{{"zero_stage", "1"}}, "shared states are not modelled"}};
  for (const auto& [changes, words] : refused)
    CHECK_THROWS_WITH(image_plan(changes), Catch::Contains(words));
}

TEST_CASE("stacks: an encoder with its decoder takes every axis except context parallelism") {
  const WhatIf t5{{"model", "t5-large"}, {"ep", "1"}, {"framework", "megatron"}};
  const auto divided = [&](const char* axis) {
    WhatIf what_if = t5;
    what_if[axis] = "2";
    return image_plan(what_if).parallelism->layout;
  };
  CHECK(divided("tp").tp == 2);
  CHECK(divided("pp").pp == 2);
  CHECK_THROWS_WITH(divided("cp"), Catch::Contains("an encoder and a decoder"));
}

TEST_CASE("stacks: experts cost more than none, and one-hot routing more than copies") {
  CollectiveCosts costs;
  const auto step = [&](const WhatIf& changes) {
    return forecast(image_plan(changes), costs).steps.front().step_time_us;
  };
  const double copied = step({{"capacity_factor", "1"}});
  CHECK(step({{"capacity_factor", "1"}, {"expert_routing", "one_hot"}}) > copied);
  CHECK(step({{"model", "swinv2-base"}, {"ep", "1"}}) < copied);
  // With four experts per GPU, every node holds copies of all experts.
  const Parallelism how = *image_plan({{"gpus", "32"}}).parallelism;
  CHECK(how.layout.expert_replicas() == 4);
}

}  // namespace
}  // namespace lambcast
