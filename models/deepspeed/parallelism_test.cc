#include "models/deepspeed/parallelism.h"

#include <catch2/catch.hpp>

#include "models/deepspeed/config.h"

namespace lambcast::deepspeed {
namespace {

using Catch::Matchers::Equals;

std::string refusal(const std::string& member) {
  try {
    parse_config("{ \"train_batch_size\": 8,\n" + member + " }", "ds.json");
    return {};
  } catch (const Error& error) {
    CHECK(error.code() == Exit::usage);
    return error.what();
  }
}

TEST_CASE("parallelism: what divides the model is refused, with its place") {
  CHECK_THAT(
      refusal(R"("pipeline": { "stages": 4 })"),
      Equals(
          "ds.json:2: pipeline.stages: pipeline parallelism is not read from the file yet: leave "
          "it out and give --pp (allowed: one stage, or no such section)"));
  CHECK_THAT(
      refusal(R"("pipeline": true)"),
      Equals("ds.json:2: pipeline: pipeline parallelism is not read from the file yet: leave it "
             "out and give --pp (allowed: one stage, or no such section)"));
  CHECK_THAT(refusal(R"("pipeline": { "activation_checkpoint_interval": 1 })"),
             Catch::Contains("pipeline.activation_checkpoint_interval"));
  CHECK_THAT(
      refusal(R"("tensor_parallel": { "autotp_size": 8 })"),
      Equals("ds.json:2: tensor_parallel.autotp_size: tensor parallelism is not read from the file "
             "yet: leave it out and give --tp (allowed: 1, or no such key)"));
  CHECK_THAT(refusal(R"("tensor_parallel": { "tensor_parallel": { "tp_size": 2 } })"),
             Catch::Contains("tensor_parallel.tensor_parallel.tp_size"));
  CHECK_THAT(refusal(R"("sequence_parallel_size": 2)"),
             Equals("ds.json:2: sequence_parallel_size: sequence parallelism is not modelled yet "
                    "(allowed: 1, or no such key)"));
  CHECK_THAT(refusal(R"("activation_checkpointing": { "cpu_checkpointing": true })"),
             Catch::Contains("activation_checkpointing.cpu_checkpointing: copying activations"));
  CHECK_THAT(
      refusal(R"("activation_checkpointing": { "number_checkpoints": 4 })"),
      Catch::Contains("number_checkpoints: recomputing activations is not read from the file yet"));
}

TEST_CASE("parallelism: sections that divide nothing stay accepted") {
  for (const char* member :
       {R"("pipeline": {})", R"("pipeline": null)", R"("pipeline": { "stages": 1 })",
        R"("pipeline": { "stages": "auto", "partition": "best", "seed_layers": false,
            "activation_checkpoint_interval": 0 })",
        R"("tensor_parallel": {})", R"("tensor_parallel": { "autotp_size": 1 })",
        R"("tensor_parallel": { "autotp_size": 0 })", R"("sequence_parallel_size": 1)",
        R"("activation_checkpointing": {})",
        R"("activation_checkpointing": { "partition_activations": true, "profile": true,
            "cpu_checkpointing": false, "number_checkpoints": null,
            "contiguous_memory_optimization": false })"}) {
    INFO(member);
    CHECK(refusal(member).empty());
  }
}

TEST_CASE("parallelism: divided activations of one rank are said to be none") {
  const DeepSpeedConfig config = parse_config(
      R"({ "train_batch_size": 8, "activation_checkpointing": { "partition_activations": true } })",
      "ds.json");
  REQUIRE(config.findings.size() == 1);
  CHECK(config.findings[0].code == "not-modelled");
  CHECK(config.findings[0].severity == Severity::note);
}

}  // namespace
}  // namespace lambcast::deepspeed
