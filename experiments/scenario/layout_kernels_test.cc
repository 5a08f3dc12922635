#include <catch2/catch.hpp>
#include <string>

#include "experiments/scenario/scenario_case.h"
#include "models/training/run/forecast.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

WhatIf plain_adamw(const WhatIf& changes) {
  return with(changes, with({{"optimizer", "adamw"}, {"cluster", "hgx-h100-ndr"}},
                            without({"freeze_step"})));
}

TEST_CASE("layout kernels: the shipped kernels can be used with any framework") {
  for (const char* framework : {"deepspeed", "megatron", "torchtitan", "colossalai", "pytorch"}) {
    INFO(framework);
    const WhatIf asked = plain_adamw({{"framework", framework}, {"zero_stage", "0"}});
    const Kernels own = resolved(asked).training.kernels;
    CHECK(own != Kernels::fused);
    CHECK(resolved(with({{"kernels", "deepspeed"}}, asked)).training.kernels == own);
    CHECK(resolved(with({{"kernels", "fused"}}, asked)).training.kernels == Kernels::fused);
  }
}

TEST_CASE("layout kernels: PyTorch updates all tensors at once from release 2.0 on") {
  const auto update_us = [](const WhatIf& versions) {
    CollectiveCosts costs;
    const WhatIf asked = with(versions, plain_adamw({{"framework", "pytorch"}}));
    return forecast(resolved(asked).training, costs).steps.front().optimizer_us;
  };
  const double newest = update_us({}), before = update_us({{"versions", "torch=1.13"}});
  CHECK(update_us({{"versions", "torch=2.0"}}) == newest);
  CHECK(before > 2 * newest);
}

// Programs that train convolutional nets run them without a layout.
TEST_CASE("layout: every program except those for transformers runs a convolutional net") {
  for (const std::string& framework : framework_names()) {
    INFO(framework);
    const WhatIf asked = with({{"model", "resnet50"}, {"framework", framework}});
    if (framework == "megatron" || framework == "torchtitan" || framework == "nemo")
      CHECK_THAT(refusal(asked), Contains("no transformer blocks"));
    else
      CHECK_FALSE(resolved(asked).training.parallelism.has_value());
  }
}

}  // namespace
}  // namespace lambcast
