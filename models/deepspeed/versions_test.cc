#include "models/deepspeed/versions.h"

#include <catch2/catch.hpp>

namespace lambcast::deepspeed {
namespace {

using Catch::Matchers::Contains;

DeepSpeedConfig config(OptimizerType type, const char* backend = "nccl") {
  DeepSpeedConfig made;
  made.optimizer.emplace();
  made.optimizer->type = type;
  made.optimizer->comm_backend_name.value = backend;
  made.fp16.enabled.value = true;
  return made;
}

std::vector<Finding> check(const char* text, DeepSpeedConfig of, int gpus = 64, int gas = 1) {
  const Versions versions = parse_versions(text, {});
  of.release = {versions.deepspeed.value_or(Version{0, 15, 4}), true, 0};
  return check_versions(versions, of, gpus, gas);
}

std::vector<std::string> severities_and_codes(const std::vector<Finding>& findings) {
  std::vector<std::string> all;
  for (const Finding& finding : findings)
    all.push_back(std::string(name_of(finding.severity)) + " " + finding.code);
  return all;
}

TEST_CASE("versions: the tutorials' requirements on PyTorch and NCCL") {
  const DeepSpeedConfig onebit = config(OptimizerType::onebit_lamb);
  const auto old_torch = check("torch=1.7.1", onebit);
  REQUIRE(old_torch.size() == 1);
  CHECK(old_torch[0].severity == Severity::error);
  CHECK(old_torch[0].code == "torch-too-old");
  CHECK(check("torch=1.8", onebit).empty());
  CHECK(check("torch=1.7", config(OptimizerType::onebit_lamb, "mpi")).empty());
  const auto old_nccl = check("nccl=2.8.2", onebit);
  REQUIRE(old_nccl.size() == 1);
  CHECK(old_nccl[0].code == "nccl-too-old");
  CHECK(check("nccl=2.8.2", onebit, 63).empty());
  CHECK(check("nccl=2.8.3+cuda11.0", onebit).empty());
  CHECK(check("torch=1.7,nccl=2.1", config(OptimizerType::lamb)).empty());
}

TEST_CASE("versions: releases of DeepSpeed that train differently") {
  const DeepSpeedConfig onebit = config(OptimizerType::onebit_adam);
  const auto code = [&](const char* versions, int gas) {
    const auto findings = check(versions, onebit, 8, gas);
    return findings.empty() ? std::string() : findings.front().code;
  };
  CHECK(code("deepspeed=0.15.4", 8) == "");
  CHECK(code("deepspeed=0.16.0", 8) == "gradients-not-averaged");
  CHECK(code("deepspeed=0.16.0", 1) == "");
  CHECK(code("deepspeed=0.18.2", 8) == "gradients-not-averaged");
  CHECK(code("deepspeed=0.18.3", 8) == "loss-not-scaled");
  CHECK(code("deepspeed=0.19.6", 1) == "loss-not-scaled");
  CHECK(code("deepspeed=0.20", 1) == "onebit-removed");
}

TEST_CASE("versions: without a given release, the newest one gets notes only") {
  const auto found = check_versions({}, config(OptimizerType::onebit_adam), 8, 8);
  CHECK(severities_and_codes(found) == std::vector<std::string>{"note onebit-removed"});
  CHECK_THAT(found[0].message, Contains("removed its 1-bit optimizers on 2026-09-12"));
  CHECK(severities_and_codes(check("deepspeed=0.20", config(OptimizerType::onebit_adam))) ==
        std::vector<std::string>{"warning onebit-removed"});
  CHECK(check_versions({}, config(OptimizerType::adam), 8, 8).empty());
}

TEST_CASE("versions: FP16_Optimizer of 0.17.6 to 0.18.1 updates nothing under fp16") {
  for (const auto& [release, updates] :
       {std::pair{"0.17.5", true}, {"0.17.6", false}, {"0.18.1", false}, {"0.18.2", true}}) {
    INFO(release);
    const std::string text = std::string("deepspeed=") + release;
    const auto found = severities_and_codes(check(text.c_str(), config(OptimizerType::adam)));
    CHECK(found == (updates ? std::vector<std::string>{}
                            : std::vector<std::string>{"warning nothing-updated"}));
    CHECK(check(text.c_str(), config(OptimizerType::lamb)).empty());  // LAMB has another wrapper
    DeepSpeedConfig bf16 = config(OptimizerType::adam);
    bf16.fp16.enabled.value = false;
    bf16.bf16_enabled.value = true;
    CHECK(check(text.c_str(), bf16).empty());
  }
}

TEST_CASE(
    "versions: a note states that bf16 without ZeRO depends on the release, unless one is given") {
  DeepSpeedConfig bf16 = config(OptimizerType::adamw);
  bf16.fp16.enabled.value = false;
  bf16.bf16_enabled.value = true;
  const auto newest = check_versions({}, bf16, 8, 1);
  CHECK(severities_and_codes(newest) == std::vector<std::string>{"note bf16-by-release"});
  CHECK_THAT(newest[0].message, Contains("holds all states on every GPU"));
  const auto pipeline = check_versions({}, bf16, 8, 1, true);
  REQUIRE(pipeline.size() == 1);
  CHECK_THAT(pipeline[0].message,
             Contains("sums gradients in bf16") && !Contains("holds all states"));
  CHECK(check_versions({}, bf16, 1, 1).empty());
  CHECK(check("deepspeed=0.17.5", bf16).empty());
  bf16.zero.stage.value = 1;
  CHECK(check_versions({}, bf16, 8, 1).empty());
}

TEST_CASE("versions: an invalid version is an error") {
  for (const auto& [text, words] : {std::pair{"torch", "'torch' is not NAME=VERSION"},
                                    {"", "'' is not NAME=VERSION"},
                                    {"torch=", "'' is not a version"},
                                    {"torch=two", "'two' is not a version"},
                                    {"torch=1.8x", "'1.8x' is not a version"},
                                    {"torch=-1", "is not a version"},
                                    {"torch=1.8,torch=2", "torch is given twice"},
                                    {"troch=2", "did you mean 'torch'"},
                                    {"torch=99999999999", "is not a version"}})
    CHECK_THROWS_WITH(parse_versions(text, {"", 0, "--versions"}), Contains(words));
}

}  // namespace
}  // namespace lambcast::deepspeed
