#include "models/deepspeed/parallelism.h"

#include <fmt/format.h>

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

std::string layout_of(const std::string& member) {
  std::string all;
  for (const auto& [key, value] :
       parse_config("{ \"train_batch_size\": 8,\n" + member + " }", "ds.json").layout)
    all += key + "=" + value + " ";
  return all;
}

TEST_CASE("parallelism: divisions of the model become what-if keys") {
  CHECK(layout_of(R"("pipeline": { "stages": 4 })") == "pp=4 ");
  CHECK(layout_of(R"("pipeline": { "stages": 2, "activation_checkpoint_interval": 1 })") ==
        "pp=2 recompute=full ");
  CHECK(layout_of(R"("tensor_parallel": { "autotp_size": 8 })") == "tp=8 ");
  CHECK(layout_of(R"("tensor_parallel": { "tensor_parallel": { "tp_size": 2 } })") == "tp=2 ");
  CHECK(layout_of(R"("tensor_parallel": { "tp": { "tp_size": 2 } })") == "tp=2 ");
  CHECK(layout_of(R"("tensor_parallel": { "autotp_size": 2, "tp": { "tp_size": 2 } })") == "tp=2 ");
  CHECK(refusal(R"("tensor_parallel": { "autotp_size": 2, "tp_size": 4 })") ==
        "ds.json:2: tensor_parallel.tp_size: is 4, but another key of tensor_parallel is 2 "
        "(allowed: one size)");
  CHECK_THAT(refusal(R"("tensor_parallel": { "autotp_size": 8, "tp": { "tp_size": 4 } })"),
             Catch::Contains("tensor_parallel.tp.tp_size: is 4"));
  CHECK(layout_of(R"("zero_optimization": { "stage": 3, "zero_hpz_partition_size": 8,
            "zero_quantized_weights": true, "zero_quantized_gradients": true })") ==
        "secondary_ranks=8 quantized_weights=true quantized_gradients=true ");
  CHECK(layout_of(R"("zero_optimization": { "stage": 3, "zero_quantized_gradients": true,
            "zeropp_loco_param": { "err_beta": 0.8, "reset_T": 1024 } })") ==
        "quantized_gradients=true exchange=loco ");
  CHECK(layout_of(R"("zero_optimization": { "stage": 3,
            "zeropp_loco_param": { "err_beta": 0.8, "reset_T": 1024 } })") == "");
  CHECK(layout_of(R"("zero_optimization": { "stage": 3, "mics_shard_size": 16 })") ==
        "shard_ranks=16 ");
  CHECK(layout_of(R"("zero_optimization": { "stage": 2, "zero_quantized_weights": true })") == "");
  for (const char* said : {R"("offload_optimizer": { "device": "cpu" })", R"("cpu_offload": true)"})
    CHECK(layout_of(fmt::format(R"("zero_optimization": {{ "stage": 2, {} }})", said)) ==
          "offload_optimizer=cpu ");
  CHECK(layout_of(R"("zero_optimization": { "stage": 2, "cpu_offload": false,
            "offload_optimizer": { "device": "nvme" } })") == "");
  CHECK(layout_of(R"("zero_optimization": { "stage": 0, "cpu_offload": true })") == "");
}

TEST_CASE("parallelism: divisions of sequences and experts become what-if keys") {
  CHECK(layout_of(R"("sequence_parallel_size": 4)") == "cp=4 ");
  CHECK(layout_of(R"("expert_parallel": { "enabled": true, "autoep_size": 8,
            "preset_model": "mixtral" })") == "ep=8 expert_kernels=grouped capacity_factor=0 ");
  CHECK(layout_of(R"("expert_parallel": { "enabled": true, "autoep_size": 4,
            "expert_tensor_parallel_size": 1, "use_grouped_mm": false },
            "use_data_before_expert_parallelism": true)") ==
        "ep=4 expert_kernels=each capacity_factor=0 order=tp-cp-dp-ep-pp ");
  CHECK(layout_of(R"("expert_parallel": { "enabled": false, "autoep_size": 8 })") == "");
  CHECK(layout_of(R"("use_data_before_expert_parallelism": true)") == "");
}

TEST_CASE("parallelism: unmodelled settings are refused with their place") {
  CHECK_THAT(
      refusal(R"("pipeline": true)"),
      Equals("ds.json:2: pipeline: pipeline parallelism is not read from the file yet: leave it "
             "out and give --pp (allowed: a section with stages, or none)"));
  CHECK_THAT(
      refusal(R"("pipeline": { "activation_checkpoint_interval": 2 })"),
      Catch::Contains("pipeline.activation_checkpoint_interval: recomputing several layers"));
  CHECK_THAT(refusal(R"("pipeline": { "stages": 2.5 })"), Catch::Contains("pipeline.stages"));
  CHECK_THAT(
      refusal(R"("activation_checkpointing": { "number_checkpoints": 4 })"),
      Catch::Contains("number_checkpoints: recomputing activations is not read from the file yet"));
}

TEST_CASE("parallelism: an invalid size is refused, in any section") {
  for (const char* form :
       {R"("tensor_parallel": {{ "autotp_size": {} }})",
        R"("tensor_parallel": {{ "tp_size": {} }})",
        R"("tensor_parallel": {{ "tp": {{ "tp_size": {} }} }})", R"("sequence_parallel_size": {})",
        R"("expert_parallel": {{ "enabled": true, "autoep_size": {} }})",
        R"("pipeline": {{ "stages": {} }})"}) {
    for (const char* size : {R"("two")", R"("2")", "-2", "2.5", "[2]", R"({ "of": 2 })", "true"}) {
      const std::string member = fmt::format(fmt::runtime(form), size);
      INFO(member);
      CHECK_THAT(refusal(member), Catch::Contains("ds.json:2: "));
    }
  }
}

TEST_CASE("parallelism: sections that divide nothing are accepted") {
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

TEST_CASE(
    "parallelism: a misspelt key inside a section is named, and no key that DeepSpeed has there") {
  const std::pair<const char*, const char*> slips[] = {
      {R"("tensor_parallel": { "autotp_sise": 8 })",
       "ds.json:2: tensor_parallel.autotp_sise: DeepSpeed has no such key, did you mean "
       "'autotp_size'?"},
      {R"("tensor_parallel": { "tp": { "tp_sizes": 2 } })", "tensor_parallel.tp.tp_sizes"},
      {R"("expert_parallel": { "enabled": true, "auto_ep_size": 8 })", "'autoep_size'"},
      {R"("expert_parallel": { "enabeld": true, "autoep_size": 8 })", "'enabled'"},
      {R"("pipeline": { "stage": 4 })", "'stages'"},
      {R"("activation_checkpointing": { "cpu_checkpoint": true })", "'cpu_checkpointing'"},
      {R"("elasticity": { "enable": true })", "'enabled'"}};
  for (const auto& [member, words] : slips) {
    INFO(member);
    const DeepSpeedConfig config =
        parse_config(fmt::format("{{ \"train_batch_size\": 8,\n{} }}", member), "ds.json");
    REQUIRE(config.findings.size() == 1);
    CHECK(config.findings[0].code == "unknown-key");
    CHECK(config.findings[0].severity == Severity::warning);
    CHECK_THAT(config.findings[0].message, Catch::Contains(words));
  }
  const DeepSpeedConfig known = parse_config(
      R"({ "train_batch_size": 8, "pipeline": { "pipe_partitioned": true, "use_reentrant": false },
           "tensor_parallel": { "autotp_size": 2, "preset_model": "llama", "tp": { "tp_grain_size": 64 } },
           "expert_parallel": { "enabled": true, "autoep_size": 4, "score_func": "auto" },
           "activation_checkpointing": { "profile": true, "synchronize_checkpoint_boundary": false } })",
      "ds.json");
  CHECK(known.findings.empty());
}

TEST_CASE("parallelism: divided activations become a what-if key") {
  CHECK(layout_of(R"("activation_checkpointing": { "partition_activations": true })") ==
        "partition_activations=true ");
  CHECK(layout_of(R"("activation_checkpointing": { "partition_activations": false })").empty());
  CHECK(layout_of(R"("activation_checkpointing": { "cpu_checkpointing": true })") ==
        "offload_activations=checkpoints ");
}

}  // namespace
}  // namespace lambcast::deepspeed
