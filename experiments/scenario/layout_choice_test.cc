#include "experiments/scenario/layout_choice.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "experiments/scenario/scenario_case.h"
#include "models/training/run/forecast.h"

namespace lambcast {
namespace {

using Catch::Contains;
using Catch::Equals;

// Returns a run of bert-large, which has 24 blocks and 16 heads, on A100s.
WhatIf layout(const WhatIf& changes = {}) {
  WhatIf what_if = with(changes, without({"freeze_step"}));
  what_if.insert_or_assign("cluster", "dgx-a100-80g");
  if (!changes.contains("optimizer")) what_if.insert_or_assign("optimizer", "adamw");
  return what_if;
}

TEST_CASE("layout choice: data parallelism with DeepSpeed's stages 0 to 2 has no layout") {
  for (const WhatIf& changes : {WhatIf{},
                                {{"tp", "1"}, {"pp", "1"}, {"ep", "1"}},
                                {{"zero_stage", "2"}},
                                {{"framework", "nvidia"}}})
    CHECK_FALSE(resolved(layout(changes)).training.parallelism.has_value());
}

TEST_CASE("layout choice: the forecast is the same with DeepSpeed stated or assumed") {
  for (const WhatIf& changes : {WhatIf{},
                                {{"zero_stage", "2"}},
                                {{"zero_stage", "3"}},
                                {{"tp", "2"}},
                                {{"optimizer", "onebit_lamb"}, {"freeze_step", "1000"}}}) {
    WhatIf said = layout(changes);
    said["framework"] = "deepspeed";
    CollectiveCosts costs;
    const Forecast one = forecast(resolved(layout(changes)).training, costs),
                   other = forecast(resolved(said).training, costs);
    CHECK(one.run.time_s == other.run.time_s);
    CHECK(one.run.time_high_s == other.run.time_high_s);
    CHECK(one.memory.peak == other.memory.peak);
  }
}

TEST_CASE("layout choice: dp and micro batches follow from the GPUs") {
  const TrainingPlan training =
      resolved(layout({{"tp", "4"}, {"pp", "2"}, {"sequence_parallel", "true"}})).training;
  REQUIRE(training.parallelism.has_value());
  CHECK(training.parallelism->layout.dp == 8);
  CHECK(training.batch.train == 65536);
  CHECK(training.batch.gas == 65536 / 16 / 8);
  CHECK(training.parallelism->sequence_parallel);
}

TEST_CASE("layout choice: every length of a curriculum divides as the longest does") {
  TrainingPlan training = resolved(layout({{"tp", "4"}, {"sequence_parallel", "true"}})).training;
  Curriculum curriculum;
  curriculum.schedule = CurriculumSchedule::fixed_discrete;
  curriculum.difficulty = {64, training.seq_len};
  curriculum.max_step = {10};
  curriculum.min_difficulty = 64;
  curriculum.max_difficulty = training.seq_len;
  training.recipe.curriculum = curriculum;
  CHECK_NOTHROW(check_parallelism(training));
  training.recipe.curriculum->difficulty.front() = 63;
  CHECK_THROWS_WITH(check_parallelism(training),
                    Contains("63 tokens of a sequence are not divisible by tp 4, a length of the "
                             "curriculum"));
}

TEST_CASE("layout choice: dp gives the GPUs, or is checked against them") {
  const WhatIf divided = layout({{"tp", "4"}, {"pp", "2"}});
  WhatIf by_copies = with({{"dp", "8"}}, divided);
  CHECK(resolved(by_copies).training.gpus == 64);
  by_copies.erase("gpus");
  CHECK(resolved(by_copies).training.gpus == 64);
  CHECK(resolved(with({{"dp", "64"}}, layout())).training.gpus == 64);
  CHECK_FALSE(resolved(with({{"dp", "64"}}, layout())).training.parallelism.has_value());
  CHECK_THAT(refusal(with({{"dp", "16"}}, divided)),
             Equals("--dp: 64 GPUs are 8 copies of a model on tp x cp x pp = 8 of them, not 16 "
                    "(allowed: 8)"));
}

TEST_CASE("layout choice: settings that a framework's pipelines do not support are refused") {
  const auto piped = [](const char* framework, const WhatIf& changes) {
    return with(changes, layout({{"pp", "4"}, {"framework", framework}}));
  };
  const auto refused = [&](const char* framework, const char* stage) {
    return refusal(piped(framework, {{"zero_stage", stage}}));
  };
  CHECK_THAT(refused("deepspeed", "2"), Contains("DeepSpeed runs no pipeline with ZeRO stage 2"));
  CHECK_THAT(refused("colossalai", "2"),
             Contains("Colossal-AI runs no pipeline with ZeRO stage 2"));
  CHECK_THAT(refused("colossalai", "3"), Contains("share states and gradients"));
  for (const char* taken : {"megatron", "torchtitan"}) CHECK(refused(taken, "2").empty());
  const auto foreign = [&](const char* framework, const WhatIf& changes) {
    const auto findings = resolved(piped(framework, changes)).findings;
    return std::ranges::any_of(
        findings, [](const Finding& finding) { return finding.code == "schedule-of-framework"; });
  };
  CHECK(foreign("deepspeed", {{"pipeline_schedule", "zb1p"}}));
  CHECK(foreign("deepspeed", {{"interleave", "2"}}));
  CHECK_FALSE(foreign("deepspeed", {}));
  CHECK_FALSE(foreign("megatron", {{"interleave", "2"}}));
}

TEST_CASE("layout choice: a schedule must fit each batch of a ramp") {
  const WhatIf interleaved = layout({{"pp", "4"},
                                     {"interleave", "2"},
                                     {"framework", "megatron"},
                                     {"global_batch", "4096"},
                                     {"rampup_batch_size", "1024:1024:100000"}});
  CHECK(resolved(interleaved).training.ramp.has_value());  // with 4, 8, 12 and 16 micro batches
  CHECK_THAT(refusal(with({{"rampup_batch_size", "512:512:100000"}}, interleaved)),
             Contains("interleaved needs micro batches (2) divisible by pp 4, at a batch of 512 of "
                      "the ramp"));
}

TEST_CASE(
    "layout choice: ZeRO stage 3 shards weights over all data-parallel ranks, or over "
    "shard_ranks") {
  const TrainingPlan all = resolved(layout({{"zero_stage", "3"}})).training;
  CHECK(all.parallelism->shard_ranks == 64);
  CHECK(resolved(layout({{"zero_stage", "3"}, {"shard_ranks", "8"}}))
            .training.parallelism->shard_ranks == 8);
  CHECK_THAT(refusal(layout({{"zero_stage", "3"}, {"shard_ranks", "7"}})),
             Contains("does not divide"));
  CHECK_THAT(refusal(layout({{"pp", "2"}, {"shard_ranks", "8"}})),
             Contains("--zero-stage 1, 2 or 3"));
}

TEST_CASE("layout choice: fp32 weights have no master copies, and their gradients are fp32") {
  const auto parts = [](const WhatIf& changes) {
    CollectiveCosts costs;
    std::map<std::string, double> named;
    for (const auto& [name, bytes] :
         forecast(resolved(layout(changes)).training, costs).memory.parts)
      named[name] = bytes.value();
    return named;
  };
  const ModelShape& bert = *resolved(layout({})).training.model;
  const double updated =
      static_cast<double>(optimized_parameters(bert)) / static_cast<double>(parameters(bert));
  for (const char* framework : {"deepspeed", "megatron"}) {
    const auto whole = parts({{"precision", "fp32"}, {"tp", "2"}, {"framework", framework}});
    CHECK(whole.at("gradients") == Approx(whole.at("weights")));
    CHECK(whole.at("momentum") + whole.at("variance") == Approx(2 * updated * whole.at("weights")));
    CHECK_FALSE(whole.contains("master_weights"));
    const auto half = parts({{"precision", "fp16"}, {"tp", "2"}, {"framework", framework}});
    CHECK(whole.at("weights") == Approx(2 * half.at("weights")));
  }
}

TEST_CASE("layout choice: only DeepSpeed's Adam with ZeRO runs on the host") {
  const auto on_host = [](WhatIf changes) {
    changes.try_emplace("offload_optimizer", "cpu");
    return layout(changes);
  };
  const TrainingPlan stage2 = resolved(on_host({{"zero_stage", "2"}})).training;
  CHECK(stage2.parallelism->optimizer_on == OptimizerOn::host);
  CHECK_FALSE(resolved(on_host({{"zero_stage", "2"}, {"offload_optimizer", "none"}}))
                  .training.parallelism.has_value());
  CHECK_THAT(refusal(on_host({})), Contains("with --zero-stage 1, 2 or 3"));
  CHECK_THAT(refusal(on_host({{"zero_stage", "1"}, {"framework", "megatron"}})),
             Contains("--framework deepspeed"));
  CHECK_THAT(refusal(on_host({{"zero_stage", "1"}, {"optimizer", "lamb"}})),
             Contains("offloads Adam and AdamW only, not lamb"));
  // A machine with twice the memory rate updates in half the time.
  CollectiveCosts costs;
  const auto update = [&](const char* rate) {
    return forecast(resolved(on_host({{"zero_stage", "2"}, {"cluster.node.host_memory", rate}}))
                        .training,
                    costs)
        .steps.front()
        .optimizer_us;
  };
  const double slow = update("100 GB/s"), fast = update("200 GB/s"), faster = update("400 GB/s");
  CHECK(slow - fast == Approx(2 * (fast - faster)).epsilon(1e-6));
  CHECK(slow > fast);
}

TEST_CASE("layout choice: ranks that share optimizer states may sum all gradients") {
  const WhatIf apex = layout({{"zero_stage", "1"},
                              {"framework", "megatron"},
                              {"optimizer", "lamb"},
                              {"shard_ranks", "8"},
                              {"full_all_reduce", "true"}});
  CHECK(resolved(apex).training.parallelism->full_all_reduce);
  CHECK_THAT(refusal(layout({{"zero_stage", "3"}, {"full_all_reduce", "true"}})),
             Contains("--zero-stage 1"));
  CHECK(resolved(layout({{"optimizer", "lars"}})).training.optimizer() == OptimizerType::lars);
}

TEST_CASE(
    "layout choice: DeepSpeed's buckets and overlap follow from its ZeRO stage in a layout too") {
  const auto training = [](const WhatIf& changes) {
    // The model is GPT-2, since training uses all of its layers; BERT has an unused pooler.
    WhatIf what_if{{"model", "gpt2"},     {"cluster", "dgx-a100-80g"},
                   {"gpus", "16"},        {"optimizer", "adam"},
                   {"precision", "fp16"}, {"zero_stage", "1"},
                   {"micro_batch", "8"},  {"steps", "10"}};
    for (const auto& [key, value] : changes) what_if[key] = value;
    return resolved(what_if).training;
  };
  const WhatIf layout{{"tp", "2"}};
  const Framework plain = training(layout).parallelism->framework;
  CHECK(plain.least_bucket == 5e8);
  CHECK_FALSE(plain.overlaps_gradients);
  WhatIf overlapped = layout;
  overlapped["overlap"] = "zero";
  CHECK(training(overlapped).parallelism->framework.overlaps_gradients);
  overlapped["pp"] = "2";
  CHECK_FALSE(training(overlapped).parallelism->framework.overlaps_gradients);
}

TEST_CASE("layout choice: an invalid layout is refused with its rule, in one line") {
  const std::pair<WhatIf, const char*> cases[] = {
      {{{"tp", "3"}}, "do not divide into copies"},
      {{{"tp", "32"}}, "16 heads are not divisible by tp 32"},
      {{{"pp", "5"}, {"gpus", "40"}, {"split", "even"}}, "layers"},
      {{{"pp", "2"}, {"zero_stage", "2"}}, "DeepSpeed runs no pipeline with ZeRO stage 2 or 3"},
      {{{"tp", "2"}, {"zero_stage", "3"}}, "(AutoTP) does not run with ZeRO stage 3"},
      {{{"tp", "2"}, {"optimizer", "onebit_adam"}, {"backend", "mpi"}}, "exchanges over all ranks"},
      {{{"tp", "2"}, {"optimizer", "onebit_lamb"}, {"zero_stage", "1"}}, "does not run with ZeRO"},
      {{{"ep", "2"}}, "bert-large has no experts"},
      {{{"etp", "1"}}, "bert-large has no experts"},
      {{{"ep", "3"}, {"gpus", "48"}, {"global_batch", "49152"}, {"model", "mixtral-8x7b"}},
       "8 experts are not divisible"},
      {{{"ep", "8"}, {"model", "mixtral-8x7b"}, {"optimizer", "onebit_adam"}},
       "would average different experts"},
      {{{"ep", "8"}, {"model", "mixtral-8x7b"}, {"imbalance", "0.5"}}, "allowed: 1 to 1000"},
      {{{"ep", "8"}, {"model", "mixtral-8x7b"}, {"capacity_factor", "2"}, {"imbalance", "2"}},
       "with a capacity: every expert computes the same"},
      {{{"quantized_weights", "true"}}, "weights that ranks share"},
      {{{"zero_stage", "3"}, {"secondary_ranks", "7"}}, "7 does not divide the 64 ranks"},
      {{{"zero_stage", "3"}, {"shard_ranks", "8"}, {"quantized_gradients", "true"}},
       "between all ranks that hold the same weights"},
      {{{"zero_stage", "3"}, {"quantized_gradients", "true"}, {"exchange", "qgz:int8"}},
       "qgz:int8 is int8, and --quantized-gradients is qgZ in int4"},
      {{{"pp", "2"}, {"pipeline_schedule", "2f2b"}}, "did you mean"},
      {{{"tp", "2"}, {"model", "resnet50"}}, "no transformer blocks"},
      {{{"tp", "2"}, {"model", "vit-l16"}}, "patches of images"},
      {{{"framework", "mxnet"}}, "bagua, other)"},
      {{{"framework", "megatronn"}}, "did you mean 'megatron'"}};
  for (const auto& [changes, words] : cases) {
    const std::string sentence = refusal(layout(changes));
    CHECK_THAT(sentence, Contains(words));
    CHECK(sentence.find('\n') == std::string::npos);
  }
}

TEST_CASE("layout choice: DeepSpeed fills experts to their capacity, others drop nothing") {
  const auto use = [](const WhatIf& changes) {
    WhatIf what_if = layout(changes);
    what_if["model"] = "mixtral-8x7b";
    what_if["ep"] = "8";
    return resolved(what_if).training.parallelism->experts;
  };
  CHECK(use({}).capacity_factor == 1);
  CHECK(use({{"capacity_factor", "1.25"}}).capacity_factor == 1.25);
  CHECK(use({{"framework", "megatron"}}).capacity_factor == 0);
  CHECK(use({{"framework", "megatron"}}).imbalance.value == 1.2);
  CHECK(use({{"framework", "megatron"}, {"imbalance", "1"}}).imbalance.value == 1);
  CHECK(use({{"expert_dispatch", "hierarchical"}}).dispatch == Dispatch::hierarchical);
  CHECK(use({{"framework", "torchtitan"}}).kernels == ExpertKernels::grouped);
  CHECK(use({}).routing == Routing::one_hot);
  CHECK(use({{"capacity_factor", "0"}}).routing == Routing::sparse);
  CHECK(use({{"expert_routing", "sparse"}}).routing == Routing::sparse);
  CHECK(use({{"framework", "megatron"}}).routing == Routing::sparse);
  CHECK_THROWS_WITH(use({{"framework", "megatron"}, {"expert_routing", "one_hot"}}),
                    Contains("one_hot needs a limit of tokens for each expert"));
}

TEST_CASE("layout choice: 1-bit LAMB on shards reports that it uses trust ratios of shards") {
  WhatIf what_if = layout({{"tp", "2"}, {"optimizer", "onebit_lamb"}, {"backend", "nccl"}});
  what_if["freeze_step"] = "1000";
  const Scenario scenario = resolved(what_if);
  const auto is_it = [](const Finding& finding) { return finding.code == "lamb-per-shard"; };
  CHECK(std::any_of(scenario.findings.begin(), scenario.findings.end(), is_it));
  CollectiveCosts costs;
  const Forecast result = forecast(scenario.training, costs);
  REQUIRE(result.steps.size() == 2);
  CHECK(result.steps[1].compress_us > 0);
  CHECK(result.run.volume_reduction > 1);
}

// Source: Narayanan et al. 2021, table 2. ZeRO-3 of 175B falls from 144 to 44 TFLOP/s per GPU
// between 384 and 1,536 GPUs at the same batch, since a smaller micro batch computes less per
// gathered weight.
TEST_CASE("layout choice: with sharded weights, small micro batches are slow") {
  const auto tflops = [](const char* gpus, const char* micro) {
    CollectiveCosts costs;
    return forecast(resolved({{"model", "gpt3-175b"},
                              {"cluster", "selene-a100"},
                              {"gpus", gpus},
                              {"optimizer", "adamw"},
                              {"zero_stage", "3"},
                              {"recompute", "full"},
                              {"attention", "unfused"},
                              {"global_batch", "1536"},
                              {"micro_batch", micro},
                              {"seq_len", "2048"},
                              {"steps", "100"}})
                        .training,
                    costs)
        .steps[0]
        .tflops_per_gpu;
  };
  CHECK(tflops("384", "4") > 1.8 * tflops("1536", "1"));
}

TEST_CASE("layout choice: a key that its layout does not use is reported as without effect") {
  const auto unread = [](const WhatIf& changes) {
    std::vector<std::string> keys;
    for (const Finding& finding : resolved(layout(changes)).findings)
      if (finding.code == "layout-no-effect")
        keys.push_back(finding.message.substr(0, finding.message.find(':')));
    return keys;
  };
  using Keys = std::vector<std::string>;
  struct Case {
    WhatIf alone, read;
    std::string key;
  };
  for (const Case& c : std::vector<Case>{
           {{{"context_exchange", "ring"}}, {{"cp", "2"}}, "--context-exchange"},
           {{{"tensor_overlap", "chunks"}},
            {{"tp", "2"}, {"sequence_parallel", "true"}},
            "--tensor-overlap"},
           {{{"pipeline_schedule", "gpipe"}}, {{"pp", "2"}}, "--pipeline-schedule"},
           {{{"split", "even"}}, {{"pp", "2"}}, "--split"},
           {{{"order", "tp-cp-ep-dp-pp"}}, {{"pp", "2"}}, "--order"},
           {{{"eager_loss", "true"}}, {{"fusion", "compiled"}}, "--eager-loss"},
           {{{"shard_handling_us", "5"}},
            {{"zero_stage", "3"}, {"optimizer", "adam"}},
            "--shard-handling-us"},
           {{{"gradient_bucket", "1000000"}, {"framework", "megatron"}, {"overlap", "none"}},
            {{"overlap", "ddp"}},
            "--gradient-bucket"}}) {
    INFO(c.key);
    WhatIf alone = c.alone;
    alone.emplace("recompute", "full");  // selects a layout
    CHECK(unread(alone) == Keys{c.key});
    CHECK(unread(with(c.read, c.alone)).empty());
  }
  CHECK(unread({{"overlap", "zero"}, {"zero_stage", "3"}, {"optimizer", "adam"}}) ==
        Keys{"--overlap"});
  CHECK(unread({{"pp", "2"}, {"send_overlap", "true"}}) == Keys{"--send-overlap"});
  const WhatIf interleaved{{"pp", "2"}, {"pipeline_schedule", "interleaved"}};
  CHECK(unread(interleaved) == Keys{"--pipeline-schedule"});
  CHECK(unread(with({{"interleave", "2"}}, interleaved)).empty());
  CHECK(unread({{"pp", "2"}, {"interleave", "2"}, {"send_overlap", "true"}}).empty());
  CHECK(unread({{"tp", "2"}, {"tensor_overlap", "all"}}) == Keys{"--tensor-overlap"});
  CHECK(unread({{"tp", "2"}, {"tensor_overlap", "backward"}}).empty());
  // DeepSpeed allocates two buckets if states are shared, with or without overlap.
  const WhatIf shared{{"optimizer", "adam"}, {"zero_stage", "1"}, {"recompute", "none"}};
  const auto peak = [&](const char* bucket) {
    const WhatIf what_if = with({{"gradient_bucket", bucket}}, shared);
    return forecast_memory(resolved(layout(what_if)).training).peak;
  };
  CHECK(peak("1000000") < peak("100000000"));
  CHECK(unread(with({{"gradient_bucket", "1000000"}}, shared)).empty());
  CHECK(unread({{"recompute", "none"}, {"gradient_bucket", "1"}}) == Keys{"--gradient-bucket"});
  // Switching off a feature that is off already causes no finding.
  CHECK(unread({{"tensor_overlap", "none"}}).empty());
}

TEST_CASE("layout choice: lora_rank adds adapters and selects a layout") {
  const TrainingPlan plain = resolved(layout({{"tp", "2"}})).training;
  const Scenario scenario = resolved(layout({{"lora_rank", "8"}}));
  const TrainingPlan& training = scenario.training;
  REQUIRE(training.parallelism.has_value());
  REQUIRE(training.model->adapters.has_value());
  CHECK(training.model->adapters->rank == 8);
  CHECK_FALSE(training.model->adapters->feed_forward());
  CHECK(trained_parameters(*training.model) == 24 * 8 * 6 * 1024);
  CHECK(trained_parameters(*plain.model) == parameters(*plain.model));
  CHECK(resolved(layout({{"lora_rank", "8"}, {"lora_targets", "all"}}))
            .training.model->adapters->feed_forward());
  const auto says_few = [](const WhatIf& changes) {
    return std::ranges::count(resolved(layout(changes)).findings, "adapters-few-bytes",
                              &Finding::code);
  };
  CHECK(says_few({{"lora_rank", "8"}}) == 0);
  CHECK(says_few({{"lora_rank", "8"}, {"optimizer", "onebit_lamb"}, {"freeze_step", "100"}}) == 1);
  CHECK(says_few({{"lora_rank", "8"}, {"exchange", "int8"}}) == 1);
  CHECK_THROWS_WITH(resolved(layout({{"lora_targets", "all"}})),
                    Contains("has no effect without adapters"));
  CHECK_THROWS_WITH(resolved(layout({{"lora_rank", "0"}})), Contains("--lora-rank"));
}

TEST_CASE("layout choice: keys of fp8 attention, exchange of heads, and gradient buckets") {
  const WhatIf h100{{"cluster", "hgx-h100-ndr"}, {"cp", "2"}, {"framework", "megatron"}};
  const auto with_h100 = [&](WhatIf changes) {
    WhatIf what_if = layout(h100);
    what_if["cluster"] = "hgx-h100-ndr";
    for (const auto& [key, value] : changes) what_if[key] = value;
    return what_if;
  };
  const auto how = [&](const WhatIf& changes) {
    return *resolved(with_h100(changes)).training.parallelism;
  };
  CHECK_FALSE(how({}).fp8_attention);
  CHECK(how({{"fp8_attention", "true"}}).fp8_attention);
  CHECK_THROWS_WITH(resolved(with_h100({{"fp8_attention", "true"}, {"attention", "flash2"}})),
                    Contains("flash2 has no kernel for it"));
  CHECK_THROWS_WITH(
      resolved(with_h100(
          {{"fp8_attention", "true"}, {"attention", "cudnn"}, {"cluster", "dgx-a100-80g"}})),
      Contains("has no matrix units for fp8"));
  CHECK_FALSE(how({}).fp8_gates);
  const WhatIf llama{{"model", "llama3-8b"}, {"fp8_activation_input", "true"}};
  CHECK(how(llama).fp8_gates);
  CHECK_THROWS_WITH(how({{"fp8_activation_input", "true"}}), Contains("no gated feed-forward"));
  WhatIf eager = llama;
  eager["fusion"] = "eager";
  CHECK_THROWS_WITH(how(eager), Contains("applies only to activations computed in one kernel"));
  CHECK(how({}).framework.context_exchange == ContextExchange::ring);
  CHECK(how({{"context_exchange", "heads"}}).framework.context_exchange == ContextExchange::heads);
  CHECK(
      how({{"context_exchange", "ring"}, {"framework", "deepspeed"}}).framework.context_exchange ==
      ContextExchange::ring);
  CHECK(how({{"gradient_bucket", "5000000"}}).framework.least_bucket == 5e6);
  CHECK(how({{"gradient_bucket", "5000000"}}).framework.bucket_per_rank == 0);
}

}  // namespace
}  // namespace lambcast
