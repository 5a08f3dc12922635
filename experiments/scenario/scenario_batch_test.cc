#include <fmt/format.h>

#include <algorithm>

#include "experiments/scenario/scenario_case.h"
#include "sim/base/temporary_folder.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::Equals;

TEST_CASE("scenario: any two of the three batch numbers give the third") {
  const Batch expected{65536, 16, 64};  // 65536 = 16 * 64 * 64 GPUs
  const WhatIf numbers{{"global_batch", "65536"}, {"micro_batch", "16"}, {"grad_accum", "64"}};
  const std::vector<std::string> keys{"global_batch", "micro_batch", "grad_accum"};
  CHECK(resolved(with(numbers)).training.batch == expected);
  for (const std::string& left_out : keys)
    CHECK(resolved(without({left_out}, numbers)).training.batch == expected);
  // A single batch number means no accumulation.
  CHECK(resolved(without({"micro_batch"})).training.batch == Batch{65536, 1024, 1});
  CHECK(resolved(without({"global_batch"})).training.batch == Batch{1024, 16, 1});
  CHECK_THAT(refusal(with({{"global_batch", "65537"}})), Contains("65537 != 16 * 64 * 64"));
  CHECK_THAT(refusal(with({{"global_batch", "64"}})),
             Contains("Gradient accumulation steps: 0 has to be greater than 0"));
  CHECK_THAT(refusal(without({"global_batch"}, {{"grad_accum", "1000000000000"}})),
             Contains("is too large"));
}

TEST_CASE("scenario: elasticity gives the batch of every GPU count, two flags overrule it") {
  const TemporaryFolder folder;
  const auto with_section = [&](const std::string& name, const std::string& beside) {
    return folder.file(name, beside + R"(
      "optimizer": {"type": "Adam"}, "fp16": {"enabled": true},
      "elasticity": {"enabled": true, "max_train_batch_size": 10000, "version": 0.1,
        "micro_batch_sizes": [8, 12, 16, 17], "min_gpus": 32, "max_gpus": 1500}})");
  };
  const std::string file = with_section("ds.json", "{");
  const WhatIf bare{{"model", "bert-large"}, {"cluster", "paper-eth40-v100"}, {"config", file}};
  const auto at = [&](const char* gpus, WhatIf flags = {}) {
    flags["gpus"] = gpus;
    return with(flags, bare);
  };
  const auto said = [](const Scenario& scenario) {
    std::vector<std::string> codes;
    for (const Finding& finding : scenario.findings)
      if (finding.code != "steps-assumed") codes.push_back(finding.code);
    return codes;
  };
  const Scenario as_written = resolved(at("64"));
  CHECK(as_written.training.batch == Batch{9792, 17, 9});
  CHECK(said(as_written) == std::vector<std::string>{"batch-from-elasticity"});
  CHECK(resolved(at("32")).training.batch == Batch{9792, 17, 18});
  CHECK(resolved(at("48")).training.batch == Batch{9792, 17, 12});
  const std::string section = fmt::format("{}:3: elasticity: ", file);
  CHECK_THAT(refusal(at("128")),
             Contains(section + "World size (128) is not valid with the current list"));

  // With one flag, as much as possible of the elastic batch is kept.
  const Scenario same = resolved(at("64", {{"micro_batch", "17"}}));
  CHECK(same.training.batch == Batch{9792, 17, 9});
  CHECK(said(same) == std::vector<std::string>{"batch-from-elasticity"});
  const std::vector<std::string> contradicted{"batch-from-elasticity", "elasticity-overridden"};
  const Scenario micro = resolved(at("64", {{"micro_batch", "51"}}));
  CHECK(micro.training.batch == Batch{9792, 51, 3});
  CHECK(said(micro) == contradicted);
  const Scenario global = resolved(at("64", {{"global_batch", "4352"}}));
  CHECK(global.training.batch == Batch{4352, 17, 4});
  CHECK(said(global) == contradicted);
  CHECK_THAT(global.findings[1].message,
             Contains(section + "overridden by the command line: train_batch_size 4352 = 17 * 4 * "
                                "64 GPUs, which DeepSpeed would not run"));
  CHECK_THAT(
      refusal(at("64", {{"global_batch", "8192"}})),
      Contains(section + "Check batch related parameters.") && Contains("8192 != 17 * 7 * 64"));
  CHECK_THAT(refusal(at("128", {{"micro_batch", "17"}})), Contains("World size (128)"));

  // Two batch keys override elasticity, which then checks neither the GPU count nor the batch keys
  // of the file.
  const WhatIf two{{"global_batch", "8192"}, {"micro_batch", "16"}};
  const Scenario free = resolved(at("128", two));
  CHECK(free.training.batch == Batch{8192, 16, 4});
  CHECK(said(free) == std::vector<std::string>{"elasticity-overridden"});
  const std::string beside = with_section("beside.json", R"({ "train_batch_size": 64,)");
  CHECK_THAT(refusal(at("64", {{"config", beside}})),
             Contains(fmt::format("{}:1: train_batch_size: One or more batch related", beside)));
  CHECK_THAT(refusal(at("64", {{"config", beside}, {"micro_batch", "17"}})),
             Contains("One or more batch related parameters were found"));
  WhatIf overruled = two;
  overruled["config"] = beside;
  CHECK(said(resolved(at("64", overruled))) == std::vector<std::string>{"elasticity-overridden"});
}

TEST_CASE("scenario: a batch left to the Trainer of Hugging Face must be given as flags") {
  const TemporaryFolder folder;
  const std::string file = folder.file("ds.json", R"({
    "train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto",
    "gradient_accumulation_steps": "auto", "optimizer": {"type": "AdamW"},
    "fp16": {"enabled": true}})");
  const WhatIf base{
      {"model", "bert-large"}, {"cluster", "paper-eth40-v100"}, {"gpus", "8"}, {"config", file}};
  const std::string asked = fmt::format(
      "{}:2: train_batch_size: \"auto\" is filled in by the Trainer of Hugging Face from its own "
      "arguments: give two of --global-batch, --micro-batch and --grad-accum",
      file);
  CHECK_THAT(refusal(base), Equals(asked));
  CHECK_THAT(refusal(with({{"grad_accum", "4"}}, base)), Equals(asked));
  const WhatIf two = with({{"grad_accum", "4"}, {"micro_batch", "16"}}, base);
  CHECK(resolved(two).training.batch == Batch{512, 16, 4});
}

TEST_CASE("scenario: a ramp of the batch gives steps from samples, and ranks divide each batch") {
  // 64 GPUs with 16 samples each process 1,024 at once. The ramp has 8 steps of 16,384 samples, 4
  // of 32,768 and 3 of 49,152.
  const WhatIf ramp{{"rampup_batch_size", "16384:16384:393216"}, {"samples", "1064960"}};
  const Scenario ramped = resolved(without({"steps"}, ramp));
  CHECK(ramped.training.steps == 8 + 4 + 3 + 10);
  const auto note = std::ranges::find(ramped.findings, "batch-ramp", &Finding::code);
  REQUIRE(note != ramped.findings.end());
  CHECK_THAT(note->message,
             Contains("15 of the run's 25 steps, with 409600 of its 1064960 samples"));
  CHECK_THAT(refusal(without({"steps"}, with({{"micro_batch", "32"},
                                              {"grad_accum", "32"},
                                              {"rampup_batch_size", "1024:1024:393216"}}))),
             Contains("--rampup-batch-size: a batch of 1024 is not divisible by micro batch 32 x "
                      "dp 64"));
  CHECK_THAT(refusal(with({{"rampup_batch_size", "65536:1:10"}})),
             Contains("--rampup-batch-size: starts with 65536 samples"));
}

TEST_CASE("scenario: more micro batches than the limit are refused, with a layout too") {
  for (const WhatIf& layout : {WhatIf{}, WhatIf{{"cluster", "hgx-h100-ndr"}, {"pp", "2"}}}) {
    const auto micro_batches = [&](const char* count) {
      return without({"global_batch"}, with(layout, {{"micro_batch", "1"}, {"grad_accum", count}}));
    };
    CHECK(resolved(micro_batches("1048576")).training.batch.gas == 1 << 20);
    for (const char* count : {"1048577", "4294967304", "100000000"})
      CHECK_THAT(refusal(micro_batches(count)),
                 Contains("accumulates more micro batches than are forecast (allowed: --grad-accum "
                          "1 to 1048576)"));
  }
}

TEST_CASE("scenario: steps from samples, rounded up; assumed ones are reported") {
  const auto steps = [](const WhatIf& changes) {
    return resolved(without({"steps"}, changes)).training.steps;
  };
  CHECK(steps({{"samples", "392757248"}}) == 5993);  // 392757248 = 5993 * 65536
  CHECK(steps({{"samples", "392757249"}}) == 5994);
  CHECK(steps({{"samples", "1"}}) == 1);
  CHECK(steps({{"samples", "392757248"}, {"steps", "5993"}}) == 5993);
  CHECK_THAT(refusal(with({{"samples", "392757248"}, {"steps", "100"}})),
             Contains("--samples: 392757248 samples at a global batch of 65536 take 5993 steps, "
                      "but --steps is 100"));
  CHECK_THAT(
      refusal(without({"steps"}, {{"samples", "9007199254740992"}, {"global_batch", "1024"}})),
      Contains("--samples: is 8796093022208 steps (allowed: up to 1000000000)"));
}

TEST_CASE("scenario: steps from tokens, which fill whole samples") {
  const auto steps = [](const WhatIf& changes) {
    return resolved(without({"steps"}, changes)).training.steps;
  };
  const std::string tokens = fmt::format("{}", 392757248LL * 128);
  CHECK(steps({{"tokens", tokens}, {"seq_len", "128"}}) == 5993);
  CHECK(steps({{"tokens", "1e9"}, {"seq_len", "128"}}) == 120);  // 119.2, rounded up
  CHECK(steps({{"tokens", "1"}}) == 1);
  CHECK_THAT(refusal(without({"steps"}, {{"tokens", "1e9"}, {"samples", "10"}})),
             Contains("--tokens: sets the same length as --samples (allowed: one of the two)"));
  CHECK_THAT(refusal(with({{"tokens", "1e9"}, {"seq_len", "128"}, {"steps", "100"}})),
             Contains("--tokens: 7812500 samples at a global batch of 65536 take 120 steps, but "
                      "--steps is 100"));
  CHECK_THAT(refusal(without({"steps"}, {{"tokens", "many"}})),
             Contains("--tokens: 'many' is not a number in range"));
}

}  // namespace
}  // namespace lambcast
