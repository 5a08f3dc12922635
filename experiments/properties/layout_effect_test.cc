// Tests the effects of layout keys, and that keys without effect are reported.
#include <algorithm>
#include <catch2/catch.hpp>

#include "experiments/scenario/layout_choice.h"
#include "experiments/scenario/scenario_case.h"
#include "models/training/run/forecast.h"

namespace lambcast {
namespace {

using Catch::Contains;

WhatIf on_a100s(const WhatIf& changes) {
  WhatIf what_if = with(changes, without({"freeze_step"}));
  what_if.insert_or_assign("cluster", "dgx-a100-80g");
  what_if.insert_or_assign("optimizer", "adamw");
  return what_if;
}

TEST_CASE(
    "layout effect: shard_groups divides the ranks into that many groups, each sharing states") {
  const auto shard_ranks = [](const WhatIf& changes) {
    return resolved(on_a100s(changes)).training.parallelism->shard_ranks;
  };
  CHECK(shard_ranks({{"zero_stage", "3"}, {"shard_groups", "8"}}) == 8);
  CHECK(shard_ranks({{"zero_stage", "3"}, {"shard_groups", "1"}}) == 64);
  CHECK_THAT(refusal(on_a100s({{"zero_stage", "3"}, {"shard_groups", "7"}})),
             Contains("--shard-groups: 7 does not divide the 64 ranks"));
  CHECK_THAT(refusal(on_a100s({{"zero_stage", "3"}, {"shard_groups", "8"}, {"shard_ranks", "8"}})),
             Contains("sets the same number as --shard-ranks"));
}

// DeepSpeed's partition_activations saves memory, and gathers each checkpoint before its block is
// recomputed.
TEST_CASE(
    "layout effect: partitioned checkpoints take less memory and more time, if there are "
    "any") {
  const WhatIf whole{{"tp", "4"}, {"recompute", "full"}};
  WhatIf parts = whole;
  parts["partition_activations"] = "true";
  CollectiveCosts costs;
  const Forecast one = forecast(resolved(on_a100s(whole)).training, costs),
                 other = forecast(resolved(on_a100s(parts)).training, costs);
  CHECK(other.memory.peak < one.memory.peak);
  CHECK(other.run.time_s > one.run.time_s);
  const auto without_effect = [](const WhatIf& changes) {
    const Scenario scenario = resolved(on_a100s(changes));
    return std::ranges::any_of(scenario.findings, [](const Finding& finding) {
      return finding.message.starts_with("--partition-activations: has no effect");
    });
  };
  CHECK_FALSE(without_effect(parts));
  parts["recompute"] = "none";
  CHECK(without_effect(parts));
  CHECK(without_effect({{"partition_activations", "true"}}));
}

TEST_CASE(
    "layout effect: an imbalance among ranks that share no experts is reported as without "
    "effect") {
  const auto says_so = [](const char* ep) {
    const Scenario scenario = resolved(on_a100s({{"model", "mixtral-8x7b"},
                                                 {"framework", "megatron"},
                                                 {"seq_len", "4096"},
                                                 {"imbalance", "2"},
                                                 {"tp", "2"},
                                                 {"sequence_parallel", "true"},
                                                 {"ep", ep}}));
    return std::ranges::any_of(scenario.findings, [](const Finding& finding) {
      return finding.message.starts_with(
          "--imbalance: has no effect: it applies to ranks that share");
    });
  };
  CHECK(says_so("1"));
  CHECK_FALSE(says_so("8"));
}

TEST_CASE("layout effect: a hierarchical dispatch on one node is reported as without effect") {
  const auto says_so = [](const char* ep) {
    WhatIf what_if = on_a100s({{"model", "mixtral-8x7b"},
                               {"framework", "megatron"},
                               {"optimizer", "adamw"},
                               {"expert_dispatch", "hierarchical"}});
    what_if["ep"] = ep;
    what_if["gpus_per_node"] = "4";
    return std::ranges::any_of(resolved(what_if).findings, [](const Finding& finding) {
      return finding.message.starts_with("--expert-dispatch: has no effect");
    });
  };
  CHECK(says_so("4"));
  CHECK_FALSE(says_so("8"));
}

// BF16_Optimizer shards 12 bytes per element over the replicas; fp16 does not shard them.
TEST_CASE("layout effect: bf16 under DeepSpeed's pipeline shares optimizer states at stage 0") {
  const auto sharding = [](const char* framework, const char* precision, const char* pp) {
    return resolved(on_a100s({{"pp", pp},
                              {"tp", "2"},
                              {"framework", framework},
                              {"precision", precision},
                              {"zero_stage", "0"}}))
        .training.parallelism->sharding;
  };
  CHECK(sharding("deepspeed", "bf16", "2") == parallel::Sharding::optimizer);
  CHECK(sharding("deepspeed", "bf16", "1") == parallel::Sharding::none);
  CHECK(sharding("deepspeed", "fp16", "2") == parallel::Sharding::none);
  CHECK(sharding("megatron", "bf16", "2") == parallel::Sharding::none);
}

}  // namespace
}  // namespace lambcast
