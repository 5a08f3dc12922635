#include "experiments/scenario/exchange_choice.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/scenario/scenario_case.h"
#include "models/training/run/forecast.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

WhatIf exchanging(const std::string& exchange, const WhatIf& more = {}) {
  WhatIf what_if = with(more, without({"freeze_step"}, {{"optimizer", "adam"}}));
  what_if["exchange"] = exchange;
  return what_if;
}

std::vector<std::string> codes(const WhatIf& what_if) {
  std::vector<std::string> found;
  for (const Finding& finding : resolved(what_if).findings) found.push_back(finding.code);
  return found;
}

bool says(const WhatIf& what_if, const std::string& code) {
  const std::vector<std::string> found = codes(what_if);
  return std::ranges::find(found, code) != found.end();
}

}  // namespace

TEST_CASE("exchange choice: sites are nodes, or parts or groups of them, and there are several") {
  // 64 GPUs, 4 per node.
  for (const char* site : {"2", "4", "8", "32"}) {
    CAPTURE(site);
    CHECK(refusal(exchanging(std::string("local:16:") + site)).empty());
  }
  for (const char* site : {"3", "6", "24"}) {
    CAPTURE(site);
    CHECK_THAT(refusal(exchanging(std::string("local:16:") + site)),
               Contains("do not divide 64 ranks, 4 a node") &&
                   Contains("a divisor of 4, or a multiple of 4 that divides 64"));
  }
  CHECK_THAT(refusal(exchanging("local:16:64")),
             Contains("a single site of all 64 ranks has nothing to average"));
}

TEST_CASE("exchange choice: an exchange begins after its start, within the run") {
  CHECK(!says(exchanging("powersgd:4 / start 100"), "exchange-never"));
  CHECK(says(exchanging("powersgd:4 / start 100", {{"steps", "100"}}), "exchange-never"));
  CHECK(says(exchanging("localsgd:8 / nodes / start 100", {{"steps", "150"}}), "exchange-seldom"));
  CHECK_THAT(refusal(exchanging("all_reduce / start 100")),
             Contains("another exchange than all_reduce"));
  CHECK_THAT(refusal(exchanging("powersgd:4 / start 100", {{"optimizer", "galore_adamw8bit"}})),
             Contains("GaLore"));
  CHECK_THAT(refusal(with({{"exchange", "onebit / two-level / start 100"}})),
             Contains("has its own exchange"));
  CHECK_THAT(refusal(exchanging("qgz / start 100", {{"zero_stage", "3"}})), Contains("/ start"));
}

TEST_CASE("exchange choice: sites of a layout consist of ranks that hold the same weights") {
  // With 64 GPUs in 4 stages, 16 ranks hold the same weights.
  CHECK(refusal(exchanging("local:16:4", {{"pp", "4"}})).empty());
  CHECK_THAT(refusal(exchanging("local:16:16", {{"pp", "4"}})),
             Contains("a single site of all 16 ranks has nothing to average"));
  CHECK_THAT(refusal(exchanging("local:16:2", {{"model", "mixtral-8x7b"},
                                               {"cluster", "hgx-h100-ndr"},
                                               {"global_batch", "64"},
                                               {"micro_batch", "1"},
                                               {"seq_len", "2048"},
                                               {"tp", "8"}})),
             Contains("sites of experts are not modelled (allowed: local:STEPS)"));
}

TEST_CASE("exchange choice: an exponential graph has a power of two ranks") {
  CHECK(refusal(exchanging("neighbours:exponential")).empty());
  CHECK_THAT(
      refusal(exchanging("neighbours:exponential", {{"gpus", "48"}, {"global_batch", "3072"}})),
      Contains("a power of two ranks, not 48 (allowed: neighbours:ring)"));
  CHECK(refusal(exchanging("neighbours:ring", {{"gpus", "48"}, {"global_batch", "3072"}})).empty());
}

TEST_CASE("exchange choice: a framework's libraries choose the form, unless it is stated") {
  const auto form = [](const std::string& exchange, const WhatIf& more) {
    return name_of(resolved(exchanging(exchange, more)).training.exchange);
  };
  // 64 GPUs, 4 per node.
  for (const char* hooks : {"pytorch", "bagua"}) {
    const WhatIf framework{{"framework", hooks}};
    CHECK(form("int8", framework) == "int8 / two-level / overlapped");
    CHECK(form("powersgd:4", framework) == "powersgd:4 / flat / overlapped");
    CHECK(form("int8 / flat / after", framework) == "int8 / flat / after");
    CHECK(says(exchanging("onebit", framework), "exchange-form"));
    CHECK_FALSE(says(exchanging("onebit / flat / after", framework), "exchange-form"));
  }
  CHECK(form("int8", {{"overlap", "ddp"}}) == "int8 / two-level / overlapped");
  for (const char* own : {"deepspeed", "megatron"}) {
    CHECK(form("int8", {{"framework", own}}) == "int8");
    CHECK_FALSE(says(exchanging("int8", {{"framework", own}}), "exchange-form"));
    CHECK(form("int8 / two-level", {{"framework", own}}) == "int8 / two-level");
  }
  CHECK_THAT(refusal(exchanging("local:16 / overlapped")), Contains("allowed: local:16"));
  CHECK_THAT(refusal(exchanging("fp8 / two-level", {{"zero_stage", "1"}})),
             Contains("ZeRO keeps a share"));
  // The graph consists of node leaders: 12 for 48 GPUs, and 16 for 64.
  const std::string graph = "neighbours:exponential / two-level";
  CHECK(refusal(exchanging(graph)).empty());
  CHECK_THAT(refusal(exchanging(graph, {{"gpus", "48"}, {"global_batch", "3072"}})),
             Contains("a power of two nodes, not 12"));
}

TEST_CASE("exchange choice: a composed exchange is checked part by part") {
  // The cluster has 64 GPUs, 4 per node, so `sites` are 16 nodes.
  const Exchange composed =
      resolved(exchanging("int4+ef / two-level / every 30 / sites")).training.exchange;
  CHECK(name_of(composed) == "int4:owed / two-level / every 30 / sites:4");
  CHECK(resolved(exchanging("fp32 / every 30 / nodes")).training.exchange ==
        resolved(exchanging("local:30:4")).training.exchange);
  // This exchange of weights is not overlapped, since hooks of the backward pass cannot access
  // them.
  CHECK(name_of(
            resolved(exchanging("int8 / every 8", {{"framework", "pytorch"}})).training.exchange) ==
        "int8 / every 8");
  CHECK_THAT(refusal(exchanging("int8 / every 8 / sites:3")), Contains("sites of 3 ranks"));
  CHECK_THAT(refusal(exchanging("int8 / every 8 / nodes", {{"zero_stage", "1"}})),
             Contains("share states need a layout"));
  CHECK_THAT(refusal(exchanging("powersgd:4 / every 8")), Contains("onebit, fp8, int8"));
  CHECK_THAT(refusal(exchanging("int8 / nodes")), Contains("every H steps"));
  CHECK_THAT(refusal(with({{"exchange", "onebit / every 8"}})), Contains("has its own exchange"));
}

TEST_CASE("exchange choice: PyTorch runs models without blocks as data parallelism with buckets") {
  const auto images = [](const WhatIf& more) {
    return with(more, exchanging("topk:1%", {{"model", "resnet18"}, {"precision", "fp32"}}));
  };
  const TrainingPlan training = resolved(images({{"framework", "pytorch"}})).training;
  CHECK_FALSE(training.parallelism.has_value());
  CHECK(training.overlap == Overlap::ddp);
  CHECK(name_of(training.exchange) == "topk:1% / flat / overlapped");
  CHECK(resolved(images({{"framework", "bagua"}, {"overlap", "none"}})).training.overlap ==
        Overlap::none);
  for (const char* after : {"deepspeed", "nvidia"})
    CHECK(resolved(images({{"framework", after}})).training.overlap == Overlap::none);
  const auto sums = [](const WhatIf& more) {
    return resolved(with(more, {{"model", "resnet18"},
                                {"optimizer", "sgd"},
                                {"framework", "tensorflow"},
                                {"cluster", "dgx-a100-80g"},
                                {"gpus", "16"},
                                {"micro_batch", "32"},
                                {"steps", "1"}}))
        .training.overlap;
  };
  CHECK(sums({{"grad_accum", "1"}}) == Overlap::ddp);
  CHECK(sums({{"grad_accum", "4"}}) == Overlap::none);
  CHECK(sums({{"grad_accum", "4"}, {"overlap", "ddp"}}) == Overlap::ddp);
  CHECK_THAT(refusal(images({{"framework", "pytorch"}, {"tp", "2"}})),
             Contains("no transformer blocks"));
  CHECK_THAT(refusal(images({{"framework", "megatron"}})), Contains("no transformer blocks"));
}

TEST_CASE("exchange choice: 1-bit optimizers and ZeRO have their own, and only one is chosen") {
  CHECK_THAT(refusal(with({{"exchange", "fp8"}})),
             Contains("onebit_lamb has its own exchange (allowed: onebit, also in two levels "
                      "and overlapped, or plain optimizers)"));
  CHECK(refusal(with({{"exchange", "onebit"}})).empty());
  for (const char* levels : {"onebit / two-level", "onebit / sharded / overlapped"}) {
    CHECK(refusal(with({{"exchange", levels}})).empty());
    CHECK(says(with({{"exchange", levels}}), "exchange-form"));
    CHECK_THAT(refusal(with({{"exchange", levels}, {"backend", "mpi"}})),
               Contains("with --backend nccl"));
  }
  CHECK_THAT(refusal(exchanging("powersgd:4", {{"zero_stage", "2"}})),
             Contains("--zero-stage 0") && Contains("fp8"));
  CHECK_THAT(refusal(exchanging("fp8", {{"zero_stage", "3"}})),
             Contains("allowed: all_reduce, qgz, qgz:int8, loco, loco:int8"));
  CHECK_THAT(refusal(exchanging("qgz")), Contains("with --zero-stage 1, 2 or 3"));
  CHECK_THAT(refusal(exchanging("sdp4bit", {{"zero_stage", "1"}})),
             Contains("runs only in Megatron-LM's distributed optimizer"));
  CHECK_THAT(refusal(exchanging("sdp4bit", {{"zero_stage", "2"}, {"framework", "megatron"}})),
             Contains("it codes the weights that ZeRO stage 1 gathers"));
}

TEST_CASE("exchange choice: exchanges that are inexact, rare or without effect are reported") {
  CHECK(says(exchanging("local:16"), "exchange-convergence"));
  CHECK_FALSE(says(exchanging("all_reduce"), "exchange-convergence"));
  CHECK_FALSE(
      says(exchanging("fp8", {{"gpus", "1"}, {"global_batch", "16"}}), "exchange-convergence"));
  CHECK(says(exchanging("local:6000"), "exchange-never"));
  CHECK_FALSE(says(exchanging("local:5993"), "exchange-never"));
  // `exchange-seldom` is reported for fewer than ten exchanges in the run, and for more than 2,000
  // steps between two.
  for (const char* steps : {"20", "100", "5993", "100000"}) {
    const std::int64_t length = std::stoll(steps);
    for (const std::int64_t every : {length / 10, length / 10 + 1, length / 2, length}) {
      const WhatIf asked = exchanging(fmt::format("local:{}", std::min<std::int64_t>(every, 65536)),
                                      {{"steps", steps}});
      INFO(steps << " steps, every " << every);
      CHECK(says(asked, "exchange-seldom") == (every > length / 10 || every > 2000));
    }
  }
  // Each fragment goes every H steps, however many there are.
  for (const char* parts : {"", " / fragments 5", " / fragments 5 / overlap 2"}) {
    INFO(parts);
    const auto every = [&](int steps) {
      return exchanging(fmt::format("int4 / every {} / ranks{}", steps, parts));
    };
    CHECK(says(every(6000), *parts == '\0' ? "exchange-never" : "exchange-seldom"));
    CHECK(says(every(600), "exchange-seldom"));
    CHECK_FALSE(says(every(590), "exchange-seldom"));
  }
  CHECK(says(exchanging("powersgd:1000"), "exchange-whole"));
  CHECK_FALSE(says(exchanging("powersgd:4"), "exchange-whole"));
  CHECK(says(exchanging("qgz", {{"zero_stage", "2"}}), "exchange-of-stage-3"));
  CHECK_FALSE(says(exchanging("qgz", {{"zero_stage", "3"}}), "exchange-of-stage-3"));
}

TEST_CASE("exchange choice: fp32 gradients can be sent in 16 bits, 16-bit ones are refused") {
  const auto single = [](const std::string& exchange, const WhatIf& more = {}) {
    return exchanging(exchange, with(more, {{"precision", "fp32"}}));
  };
  const auto step_of = [&](const char* exchange, const char* framework) {
    CollectiveCosts costs;
    return forecast(resolved(single(exchange, {{"framework", framework}})).training, costs)
        .steps.front();
  };
  for (const char* half : {"fp16", "bf16"})
    for (const char* framework : {"deepspeed", "pytorch", "tensorflow"}) {
      INFO(half << " " << framework);
      const StepForecast plain = step_of("all_reduce", framework);
      const StepForecast rounded = step_of(half, framework);
      CHECK(rounded.wire_bytes_per_gpu == Approx(plain.wire_bytes_per_gpu / 2).epsilon(1e-6));
      CHECK(rounded.step_time_us < plain.step_time_us);
    }
  CHECK(resolved(single("fp16", {{"framework", "pytorch"}})).training.exchange.is_overlapped());
  CHECK_THAT(refusal(exchanging("fp16")), Contains("gradients are sent in 16 bits already"));
  CHECK_THAT(refusal(single("bf16", {{"zero_stage", "2"}})), Contains("communication_data_type"));
  // Weights are sent in fp32 every H steps at any precision, so bf16 has an effect.
  CHECK(refusal(exchanging("bf16 / every 30 / nodes")).empty());
  // fp32_gradients=false is refused for fp32 weights; the error names the exchange to use instead.
  for (const char* framework : {"deepspeed", "pytorch", "torchtitan"})
    CHECK_THAT(
        refusal(single("all_reduce", {{"framework", framework}, {"fp32_gradients", "false"}})),
        Contains("gradients of fp32 weights are in fp32") && Contains("--exchange fp16"));
}

}  // namespace lambcast
