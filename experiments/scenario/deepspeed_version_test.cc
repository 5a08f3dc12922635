#include "experiments/scenario/scenario_case.h"
#include "sim/base/temporary_folder.h"

namespace lambcast {
namespace {

using Catch::Contains;

TEST_CASE("scenario: one release of DeepSpeed, however it is stated") {
  const auto release = [](const WhatIf& more) {
    WhatIf asked = with(more);
    return resolved(asked).config.release.value;
  };
  const WhatIf newest{{"cluster", "commodity-10gbe"}};
  CHECK(release(newest) == deepspeed::release::newest);
  CHECK(release({{"deepspeed_version", "0.15.4"}}) == Version{0, 15, 4});
  CHECK(release({{"versions", "torch=2.1,deepspeed=0.15.4"}}) == Version{0, 15, 4});
  // without a flag: the release that ran on that cluster
  CHECK(release({{"cluster", "paper-eth40-v100"}}) == Version{0, 3, 0});
  CHECK(release({{"cluster", "paper-eth40-v100"}, {"deepspeed_version", "0.19"}}) ==
        Version{0, 19, 0});
  CHECK_THAT(refusal(with({{"deepspeed_version", "0.15"}, {"versions", "deepspeed=0.16"}})),
             Contains("--deepspeed-version: 0.15.0 is not the 0.16.0 of --versions"));
  CHECK_THAT(refusal(with({{"deepspeed_version", "new"}})), Contains("'new' is not a version"));
}

TEST_CASE("scenario: layouts sum gradients and share states by DeepSpeed's release and file") {
  const TemporaryFolder folder;
  const std::string fp32_sums =
      folder.file("ds.json", R"({"zero_optimization": {"stage": 1}, "bf16": {"enabled": true},
                     "data_types": {"grad_accum_dtype": "fp32"}})");
  const auto how = [](const WhatIf& more) {
    WhatIf asked = with(more);
    asked.insert_or_assign("optimizer", "adam");
    asked["tp"] = "2";
    return *resolved(asked).training.parallelism;
  };
  const WhatIf newest{{"precision", "bf16"}, {"deepspeed_version", "0.19.5"}},
      old{{"precision", "bf16"}, {"deepspeed_version", "0.17.5"}};
  CHECK(how({{"config", fp32_sums}}).framework.fp32_gradients);
  CHECK_FALSE(how({{"config", fp32_sums}, {"fp32_gradients", "false"}}).framework.fp32_gradients);
  CHECK_FALSE(how(newest).framework.fp32_gradients);
  CHECK(how(newest).sharding == parallel::Sharding::none);
  CHECK(how(old).framework.fp32_gradients);
  CHECK(how(old).sharding == parallel::Sharding::optimizer);
}

TEST_CASE("scenario: a warning if tensors are flattened for an optimizer that needs them whole") {
  const auto warning = [](const char* optimizer, const WhatIf& more) -> std::string {
    WhatIf asked = with(more);
    asked.insert_or_assign("optimizer", optimizer);
    for (const Finding& finding : resolved(asked).findings)
      if (finding.code == "flat-tensors") return finding.message;
    return "";
  };
  const WhatIf newest{{"precision", "bf16"}, {"deepspeed_version", "0.19.5"}},
      old{{"precision", "bf16"}, {"deepspeed_version", "0.17.5"}};
  for (const auto& [optimizer, instead] : {std::pair("adafactor", "nothing is factored"),
                                           {"came", "nothing is factored"},
                                           {"galore_adamw8bit", "nothing is projected"},
                                           {"distributed_lamb", "norms and trust ratios"}}) {
    INFO(optimizer);
    CHECK(warning(optimizer, newest).empty());
    CHECK_THAT(warning(optimizer, old), Contains("BF16_Optimizer") && Contains(instead));
  }
  CHECK(warning("adam", old).empty());
  const TemporaryFolder folder;
  const std::string untested =
      folder.file("ds.json", R"({"zero_optimization": {"stage": 1}, "fp16": {"enabled": true},
                     "zero_allow_untested_optimizer": true})");
  CHECK_THAT(warning("came", {{"config", untested}}),
             Contains("ZeRO hands DistributedCAME a rank's shard of each parameter group"));
  // Colossal-AI gets no warning, since it tracks which rank holds which shard.
  CHECK(warning("came", {{"framework", "colossalai"}, {"zero_stage", "1"}}).empty());
}

}  // namespace
}  // namespace lambcast
