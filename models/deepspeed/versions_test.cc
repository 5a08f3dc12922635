#include "models/deepspeed/versions.h"

#include <catch2/catch.hpp>

namespace lambcast::deepspeed {
namespace {

using Catch::Matchers::Contains;

DeepSpeedConfig config(OptimizerType type, CommBackend backend = CommBackend::nccl) {
  DeepSpeedConfig made;
  made.optimizer.emplace();
  made.optimizer->type = type;
  made.optimizer->comm_backend_name.value = backend;
  made.fp16.enabled.value = true;
  return made;
}

std::vector<Finding> check(const char* versions, const DeepSpeedConfig& of, int gpus = 64,
                           int gas = 1) {
  return check_versions(parse_versions(versions, {}), of, gpus, gas);
}

TEST_CASE("versions: what the tutorials ask of PyTorch and NCCL") {
  const DeepSpeedConfig onebit = config(OptimizerType::onebit_lamb);
  const auto old_torch = check("torch=1.7.1", onebit);
  REQUIRE(old_torch.size() == 1);
  CHECK(old_torch[0].severity == Severity::error);
  CHECK(old_torch[0].code == "torch-too-old");
  CHECK(check("torch=1.8", onebit).empty());
  CHECK(check("torch=1.7", config(OptimizerType::onebit_lamb, CommBackend::mpi)).empty());
  const auto old_nccl = check("nccl=2.8.2", onebit);
  REQUIRE(old_nccl.size() == 1);
  CHECK(old_nccl[0].code == "nccl-too-old");
  CHECK(check("nccl=2.8.2", onebit, 63).empty());
  CHECK(check("nccl=2.8.3+cuda11.0", onebit).empty());
  CHECK(check("torch=1.7,nccl=2.1", config(OptimizerType::lamb)).empty());
}

TEST_CASE("versions: releases of DeepSpeed that train something else") {
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

TEST_CASE("versions: what is none is an error") {
  for (const auto& [text, words] : {std::pair{"torch", "'torch' is not NAME=VERSION"},
                                    {"", "'' is not NAME=VERSION"},
                                    {"torch=", "'' is no version"},
                                    {"torch=two", "'two' is no version"},
                                    {"torch=1.8x", "'1.8x' is no version"},
                                    {"torch=-1", "is no version"},
                                    {"torch=1.8,torch=2", "torch is given twice"},
                                    {"troch=2", "did you mean 'torch'"},
                                    {"torch=99999999999", "is no version"}})
    CHECK_THROWS_WITH(parse_versions(text, {"", 0, "--versions"}), Contains(words));
}

}  // namespace
}  // namespace lambcast::deepspeed
