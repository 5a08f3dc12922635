#include "experiments/scenario/layout_findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "experiments/scenario/scenario_case.h"
#include "models/training/run/forecast.h"
#include "sim/base/temporary_folder.h"

namespace lambcast {
namespace {

using Catch::Contains;

// Returns a run of GPT-2 on the 8 GPUs of one node.
WhatIf on(const char* cluster, const WhatIf& changes) {
  return with(changes, {{"model", "gpt2"},
                        {"cluster", cluster},
                        {"gpus", "8"},
                        {"optimizer", "adam"},
                        {"global_batch", "64"},
                        {"micro_batch", "4"}});
}

// Returns the message of the finding with this code; empty if there is none.
std::string said(const std::string& code, const WhatIf& what_if) {
  for (const Finding& finding : resolved(what_if).findings)
    if (finding.code == code) return finding.message;
  return {};
}

TEST_CASE(
    "layout findings: attention that does not run on a GPU is refused, untimed one is "
    "reported") {
  const auto asked = [](const char* cluster, const char* kernel) {
    return on(cluster, {{"attention", kernel}});
  };
  CHECK(refusal(asked("dgx-a100-80g", "flash3")) ==
        "--attention: flash3 does not run on a100-80g, of compute capability 8.0 (allowed: "
        "unfused, flash1, flash2, cudnn)");
  CHECK_THAT(refusal(asked("dgx1-v100", "flash2")), Contains("(allowed: unfused, flash1)"));
  CHECK_THAT(refusal(asked("hgx-b200-ndr", "flash3")), Contains("does not run on b200"));
  CHECK(said("attention-untimed", asked("hgx-h100-ndr", "flash4")) ==
        "--attention: no measured time of flash4 on h100; assumed: that of cudnn");
  CHECK_THAT(said("attention-untimed", asked("dgx-a100-80g", "cudnn")), Contains("that of flash2"));
  for (const auto& [cluster, kernel] : {std::pair{"hgx-h100-ndr", "flash3"},
                                        {"hgx-b200-ndr", "flash4"},
                                        {"dgx-a100-80g", "flash2"}})
    CHECK(said("attention-untimed", asked(cluster, kernel)).empty());
}

TEST_CASE("layout findings: sequence parallelism with DeepSpeed gets a warning") {
  const WhatIf divided{{"tp", "2"}, {"sequence_parallel", "true"}};
  CHECK_THAT(said("sequence-of-framework", on("dgx-a100-80g", divided)), Contains("AutoTP"));
  CHECK(
      said("sequence-of-framework", on("dgx-a100-80g", with({{"framework", "megatron"}}, divided)))
          .empty());
  CHECK(said("sequence-of-framework", on("dgx-a100-80g", {{"tp", "2"}})).empty());
}

TEST_CASE("layout findings: stages that share NICs are reported if their passes use the network") {
  const auto asked = [](const char* stage, const char* order) {
    return WhatIf{{"model", "gpt2-xl"},
                  {"cluster", "azure-ndv2"},
                  {"gpus", "32"},
                  {"optimizer", "adam"},
                  {"micro_batch", "1"},
                  {"grad_accum", "1"},
                  {"framework", "megatron"},
                  {"pp", "8"},
                  {"zero_stage", stage},
                  {"order", order}};
  };
  for (const char* stage : {"2", "3"}) {
    CHECK_THAT(said("passes-meet", asked(stage, "tp-cp-ep-pp-dp")), Contains("8 pipeline stages"));
    CHECK(said("passes-meet", asked(stage, "tp-cp-ep-dp-pp")).find("8 pipeline") ==
          std::string::npos);
  }
  CHECK(said("passes-meet", asked("1", "tp-cp-ep-pp-dp")).empty());
}

TEST_CASE("layout findings: a prefetch bucket smaller than a matrix counts as whole matrices") {
  const TemporaryFolder folder;
  const auto with_bucket = [&](const char* elements) {
    const std::string path = folder.file(
        "ds.json", fmt::format("{{\"fp16\": {{\"enabled\": true}}, \"zero_optimization\": "
                               "{{\"stage\": 3, \"stage3_prefetch_bucket_size\": {}}}}}",
                               elements));
    return on("dgx-a100-80g", {{"config", path}});
  };
  // A block has 12 h^2 + 13 h parameters in four matrices, with h = 768: 1,771,968 in each.
  CHECK_THAT(said("prefetch-below-matrix", with_bucket("1e5")),
             Contains("counts as 1771968: the 4 matrices"));
  CHECK(said("prefetch-below-matrix", with_bucket("2e6")).empty());
  const auto time = [&](const char* elements) {
    CollectiveCosts costs;
    return forecast(resolved(with_bucket(elements)).training, costs).run.time_s;
  };
  CHECK(time("1e5") == time("1e6"));
  CHECK(time("1e5") != time("1e8"));
}

// A V100 has 15.7 TFLOP/s in fp32 and 125 in fp16.
TEST_CASE("layout findings: bf16 before Ampere is multiplied in fp32") {
  for (const WhatIf& layout : {WhatIf{}, {{"tp", "2"}}, {{"model", "bert-large"}}}) {
    const auto run = [&](const char* cluster, const char* precision) {
      return on(cluster, with({{"precision", precision}}, layout));
    };
    const auto time = [&](const char* precision) {
      CollectiveCosts costs;
      return forecast(resolved(run("dgx1-v100", precision)).training, costs).run.time_s;
    };
    CHECK(time("bf16") > 2.5 * time("fp16"));
    CHECK_THAT(said("bf16-emulated", run("dgx1-v100", "bf16")),
               Contains("v100") && Contains("7.0") && Contains("148322"));
    CHECK(said("bf16-emulated", run("dgx1-v100", "fp16")).empty());
    CHECK(said("bf16-emulated", run("dgx-a100-80g", "bf16")).empty());
  }
}

}  // namespace
}  // namespace lambcast
