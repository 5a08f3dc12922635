// Fixtures follow configurations in public repositories: DeepSpeedExamples (bing_bert,
// BingBertSquad), EleutherAI/gpt-neox and its forks, Megatron scripts, tutorials.
#include "models/deepspeed/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <fstream>

#include "models/codes_test.h"
#include "models/deepspeed/recipe.h"
#include "models/deepspeed/rules.h"

namespace lambcast::deepspeed {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::Equals;

DeepSpeedConfig read_text(std::string_view text) { return parse_config(text, "ds.json"); }

constexpr const char* onebit_lamb = R"({
  "train_batch_size": 65536,
  "train_micro_batch_size_per_gpu": 64,
  "steps_per_print": 1000,
  "prescale_gradients": false,
  "optimizer": {
    "type": "OneBitLamb",
    "params": {
      "lr": 11e-3, "weight_decay": 0.01, "bias_correction": false,
      "max_coeff": 0.3, "min_coeff": 0.01,
      "freeze_step": 1000,
      "cuda_aware": %CUDA%,
      "comm_backend_name": "%BACKEND%",
      "coeff_beta": 0.9, "factor_max": 4.0, "factor_min": 0.5, "factor_threshold": 0.1
    }
  },
  "gradient_clipping": 1.0,
  "wall_clock_breakdown": false,
  "fp16": { "enabled": true, "loss_scale": 0, "initial_scale_power": 16 }
})";

std::string with_backend(const char* backend, const char* cuda_aware) {
  std::string text = onebit_lamb;
  text.replace(text.find("%CUDA%"), 6, cuda_aware);
  text.replace(text.find("%BACKEND%"), 9, backend);
  return text;
}

TEST_CASE("config: 1-bit LAMB over NCCL, every value with its line") {
  const DeepSpeedConfig config = read_text(with_backend("nccl", "false"));
  CHECK(config.batch.train == 65536);
  CHECK(config.batch.micro == 64);
  CHECK_FALSE(config.batch.gas);
  CHECK(resolve_batch(config.batch, 128) == Batch{65536, 64, 8});
  REQUIRE(config.optimizer);
  const OptimizerConfig& optimizer = *config.optimizer;
  CHECK(optimizer.type == OptimizerType::onebit_lamb);
  CHECK(optimizer.line == 7);
  CHECK(optimizer.lr.value == 0.011);
  CHECK(optimizer.weight_decay.value == 0.01);
  CHECK_FALSE(optimizer.bias_correction.value);
  CHECK(optimizer.max_coeff.value == 0.3);
  CHECK(optimizer.min_coeff.value == 0.01);
  CHECK(optimizer.freeze_step.value == 1000);
  CHECK(optimizer.freeze_step.given);
  CHECK(optimizer.freeze_step.line == 11);
  CHECK(optimizer.comm_backend_name.value == "nccl");
  CHECK(optimizer.coeff_beta.value == 0.9);
  CHECK(optimizer.factor_max.value == 4.0);
  CHECK(optimizer.factor_min.value == 0.5);
  CHECK(optimizer.factor_threshold.value == 0.1);
  CHECK_FALSE(optimizer.betas.given);
  CHECK(optimizer.betas.value == std::array{0.9, 0.999});
  CHECK(config.gradient_clipping.value == 1.0);
  CHECK(config.fp16.enabled.value);
  CHECK(config.fp16.initial_scale_power.value == 16);
  CHECK(config.zero.stage.value == 0);
  CHECK(recipe_of(config).precision.on_wire() == DataType::fp16);
  CHECK(check_config(config).empty());
  CHECK(check_run(config, 7500).empty());
}

TEST_CASE("config: a precision of another library is a warning, since the forecast is in fp32") {
  const DeepSpeedConfig config = read_text(R"({"train_batch_size": 8, "amp": {"enabled": true}})");
  REQUIRE(config.findings.size() == 1);
  CHECK(config.findings.front().severity == Severity::warning);
  CHECK_THAT(config.findings.front().message, Contains("amp: "));
  CHECK(read_text(R"({"train_batch_size": 8, "amp": {"enabled": false}})").findings.empty());
}

TEST_CASE("config: a finding names a logger that synchronises each collective") {
  const auto found = [](const char* enabled) {
    return read_text(fmt::format(R"({{"train_batch_size": 8, "comms_logger": {{"enabled": {}}}}})",
                                 enabled))
        .findings;
  };
  REQUIRE(found("true").size() == 1);
  CHECK_THAT(found("true").front().message,
             Contains("comms_logger: lambcast has no model of this"));
  CHECK(found("false").empty());
}

TEST_CASE("config: 1-bit LAMB over MPI, with and without CUDA-aware buffers") {
  for (const char* cuda_aware : {"true", "false"}) {
    const DeepSpeedConfig config = read_text(with_backend("mpi", cuda_aware));
    CHECK(config.optimizer->comm_backend_name.value == "mpi");
    CHECK(config.optimizer->cuda_aware.value == (std::string(cuda_aware) == "true"));
    CHECK(check_config(config).empty());
  }
  CHECK(codes(check_config(read_text(with_backend("nccl", "true")))) ==
        std::vector<std::string>{"no-effect"});
}

TEST_CASE("config: 0/1 Adam and its defaults") {
  const DeepSpeedConfig config = read_text(R"({
    "train_batch_size": 4096, "train_micro_batch_size_per_gpu": 16,
    "optimizer": { "type": "ZeroOneAdam", "params": {
      "lr": 4e-4, "bias_correction": false, "var_freeze_step": 12500, "local_step_scaler": 32678,
      "cuda_aware": false, "comm_backend_name": "nccl" } },
    "fp16": { "enabled": true, "loss_scale": 0, "initial_scale_power": 16 } })");
  CHECK(config.optimizer->type == OptimizerType::zero_one_adam);
  CHECK(config.optimizer->var_freeze_step.value == 12500);
  CHECK(config.optimizer->local_step_scaler.value == 32678);
  CHECK(config.optimizer->var_update_scaler.value == 16);
  CHECK_FALSE(config.optimizer->var_update_scaler.given);
  CHECK(config.optimizer->local_step_clipper.value == 16);
  CHECK(check_config(config).empty());
  CHECK(check_run(config, 125000).empty());
  CHECK(codes(check_run(config, 12500)) == std::vector<std::string>{"never-frozen"});
  // The first silent step is 12,500 + 32,678 + 1.
  CHECK(codes(check_run(config, 45178)) == std::vector<std::string>{"no-silent-step"});
  CHECK(check_run(config, 45179).empty());
}

TEST_CASE("config: the spelling of SQuAD files, only \"enabled\" under fp16") {
  const DeepSpeedConfig config = read_text(R"({
    "train_batch_size": 96, "train_micro_batch_size_per_gpu": 3,
    "optimizer": { "type": "OnebitAdam", "params": { "lr": 3e-5, "freeze_step": 400,
      "weight_decay": 0.0, "bias_correction": false, "cuda_aware": false,
      "comm_backend_name": "mpi" } },
    "gradient_clipping": 1.0, "fp16": { "enabled": true } })");
  CHECK(config.optimizer->type == OptimizerType::onebit_adam);
  CHECK(config.fp16.initial_scale_power.value == 16);
  CHECK_FALSE(config.fp16.initial_scale_power.given);
  CHECK(check_config(config).empty());
}

TEST_CASE("config: the type of the optimizer in any upper or lower case") {
  const std::pair<const char*, OptimizerType> spellings[] = {
      {"Adam", OptimizerType::adam},
      {"AdamW", OptimizerType::adamw},
      {"LAMB", OptimizerType::lamb},
      {"OneBitAdam", OptimizerType::onebit_adam},
      {"OnebitAdam", OptimizerType::onebit_adam},
      {"onebitlamb", OptimizerType::onebit_lamb},
      {"lion", OptimizerType::lion},
      {"ZeroOneAdam", OptimizerType::zero_one_adam}};
  for (const auto& [spelling, type] : spellings)
    CHECK(read_text(fmt::format("optimizer: {{type: \"{}\"}}", spelling)).optimizer->type == type);
}

TEST_CASE("config: relaxed spellings and tabs, as in tutorials and hand-edited files") {
  const DeepSpeedConfig config = read_text(R"(# 1-bit Adam, after the tutorial
{
	train_batch_size: 4096
	train_micro_batch_size_per_gpu: 16,
	"optimizer": {
		type: "OneBitAdam", // not Adam
		"params": {
			"lr": 2e-4,
			"freeze_step": 400,
		}
	},
	"fp16": {
		"enabled": true,
	}
})");
  CHECK(config.batch.train == 4096);
  CHECK(config.batch.micro == 16);
  CHECK(config.optimizer->freeze_step.value == 400);
  CHECK(config.fp16.enabled.value);
  CHECK(check_config(config).empty());
}

TEST_CASE("config: unknown top-level keys are findings, blocks that are not modelled are noted") {
  const DeepSpeedConfig config = read_text(R"({
    "train_batch_size": 256, "gradient_accumulation_steps": 1,
    "optimizer": { "type": "Adam", "params": { "lr": 0.001, "betas": [0.8, 0.999], "eps": 1e-8,
      "weight_decay": 3e-7 } },
    "zero_optimization": { "stage": 0 }, "zero_allow_untested_optimizer": true,
    "fp16": { "enabled": true, "auto_cast": true },
    "gradient_clipping": 0, "cuda_visible_devices": 0, "wall_clock_breakdown" : false,
    "gradient_cliping": 1.0,
    "sparse_attention": { "mode": "fixed" }, "elasticity": { "enabled": false } })");
  CHECK(config.optimizer->betas.value == std::array{0.8, 0.999});
  CHECK(config.fp16.auto_cast.value);
  REQUIRE(config.findings.size() == 3);
  CHECK(config.findings[0].message == "ds.json:7: cuda_visible_devices: DeepSpeed has no such key");
  CHECK(config.findings[0].severity == Severity::warning);
  CHECK_THAT(config.findings[1].message,
             Contains("gradient_cliping") && Contains("did you mean 'gradient_clipping'?"));
  CHECK(config.findings[2].code == "not-modelled");
  CHECK_THAT(config.findings[2].message, Contains("ds.json:9: sparse_attention"));
}

TEST_CASE("config: gpt-neox's file gets all its errors at once") {
  const DeepSpeedConfig config = read_text(R"({
    "train_batch_size": 256, "gradient_accumulation_steps": 1, "gradient_clipping": 1.0,
    "tensorboard": { "enabled": true, "output_path": "./logs" },
    "optimizer": { "type": "OneBitAdam", "params": { "lr": 2e-4, "freeze_step": 2,
	"cuda-aware": true } },
    "scheduler": { "type": "WarmupLR", "params": { "warmup_num_steps": 5000 } },
    "fp16": { "enabled": true },
    "zero_optimization": { "stage": 1, "contiguous_gradients" : true, "cpu_offload": false } })");
  const std::vector<Finding> findings = check_config(config);
  CHECK(codes(findings) == std::vector<std::string>{"unknown-optimizer-param", "onebit-with-zero"});
  CHECK_THROWS_WITH(refuse_errors(findings),
                    Equals("ds.json:5: optimizer.params.cuda-aware: __init__() got an unexpected "
                           "keyword argument 'cuda-aware', did you mean 'cuda_aware'?\n"
                           "ds.json:8: zero_optimization.stage: 1bit-Adam is not compatible with "
                           "ZeRO"));
  // With freeze_step 2 there is a single warm-up step.
  CHECK(warmup_steps(recipe_of(config)) == 1);
  CHECK(codes(check_run(config, 100)) == std::vector<std::string>{"freeze-early"});
}

TEST_CASE("config: a fork's missing comma hides a duplicate key") {
  CHECK_THROWS_WITH(read_text(R"({
    "train_batch_size": 1280, "gradient_accumulation_steps": 80,
    "optimizer": { "type": "Adam", "params": {
        "lr": 2e-4,
        "freeze_step": 2
        "lr": 6e-4
    } } })"),
                    Equals("ds.json:6: lr: Duplicate keys in DeepSpeed config: ['lr']"));
}

TEST_CASE("config: 1-bit parameters left under a plain optimizer are a warning") {
  const DeepSpeedConfig config =
      read_text("optimizer: {type: \"Adam\", params: {lr: 1e-4\n freeze_step: 5\n}}");
  REQUIRE(config.findings.size() == 1);
  CHECK(config.findings[0].severity == Severity::warning);
  CHECK_THAT(config.findings[0].message, Contains("unexpected keyword argument 'freeze_step'"));
}

TEST_CASE("config: a template with unfilled placeholders") {
  CHECK_THROWS_WITH(read_text("{\n  \"train_batch_size\": GB_SIZE,\n  "
                              "\"train_micro_batch_size_per_gpu\": MB_SIZE,\n}"),
                    Equals("ds.json:2: train_batch_size: the text 'GB_SIZE,' is not a whole "
                           "number; text without quotes runs to the end of its line"));
}

TEST_CASE("config: files without an optimizer or batch numbers") {
  const DeepSpeedConfig tuning = read_text(R"({
    "train_micro_batch_size_per_gpu": "auto", "fp16": { "enabled": true },
    "autotuning": { "enabled": true } })");
  CHECK_FALSE(tuning.optimizer);
  CHECK_FALSE(tuning.batch.micro);
  CHECK(codes(check_config(tuning)) ==
        std::vector<std::string>{"not-modelled", "auto-value", "no-optimizer"});
  CHECK_THAT(tuning.findings[1].message,
             Contains("ds.json:2: train_micro_batch_size_per_gpu: \"auto\" is filled in by Hugging "
                      "Face, not by DeepSpeed"));
  CHECK_THROWS_WITH(resolve_batch(tuning.batch, 8), Contains("needs to be provided"));

  const DeepSpeedConfig stage_0 = read_text(R"({
    "train_micro_batch_size_per_gpu": 8, "gradient_accumulation_steps": 3,
    "zero_optimization": { "stage": 0, "reduce_bucket_size": 7e7, "allgather_bucket_size": 7e7,
      "overlap_comm": true } })");
  CHECK(resolve_batch(stage_0.batch, 4) == Batch{96, 8, 3});
  CHECK(stage_0.zero.reduce_bucket_size.value == 70'000'000);
  CHECK(codes(check_config(stage_0)) ==
        std::vector<std::string>{"no-effect", "no-effect", "no-effect", "no-optimizer"});

  CHECK(read_text("").findings.empty());
  CHECK_THROWS_WITH(read_text(R"({"vocab_size": 30522, "hidden_size": 1024})"),
                    Contains("has no key of a DeepSpeed configuration"));
}

TEST_CASE("config: every known top-level key is accepted") {
  const DeepSpeedConfig config = read_text(R"({
    "train_batch_size": null, "steps_per_print": 10, "dump_state": true, "wandb": {},
    "communication_data_type": "FP32", "gradient_predivide_factor": 8, "bfloat16": {"enabled": 1},
    "data_types": {"grad_accum_dtype": "fp32"}, "checkpoint": {}, "timers": {}, "comms_logger": {},
    "flops_profiler": {"enabled": false}, "zero_optimization": true, "log_level": "info" })");
  CHECK(config.findings.empty());
  CHECK_FALSE(config.batch.train);
  CHECK(config.communication_data_type.value == DataType::fp32);
  CHECK(recipe_of(config).precision.on_wire() == DataType::fp32);
  CHECK(config.bf16_enabled.value);
  CHECK(config.zero.stage.value == 1);  // the old boolean form
  CHECK(config.zero.stage.given);
}

TEST_CASE("config: gradients are sent in the precision of the training") {
  CHECK(recipe_of(read_text("fp16: {enabled: true}")).precision.on_wire() == DataType::fp16);
  CHECK(recipe_of(read_text("bf16: {enabled: true}")).precision.on_wire() == DataType::bf16);
  CHECK(recipe_of(read_text("fp16: {enabled: false}")).precision.on_wire() == DataType::fp32);
  CHECK(recipe_of(read_text("communication_data_type: \"bf16\"")).precision.on_wire() ==
        DataType::bf16);
}

TEST_CASE("config: weight decay is the file's value, zero by default; runs by flags have decay") {
  const auto decays = [](const char* params) {
    return recipe_of(read_text(fmt::format(R"({{"optimizer": {{"type": "OneBitLamb",
      "params": {{{}}}}}}})",
                                           params)))
        .weight_decay;
  };
  CHECK(decays(R"("weight_decay": 0.1)") == 0.1);
  CHECK(decays(R"("weight_decay": 0.0)") == 0);
  CHECK(decays("") == 0);
  DeepSpeedConfig of_flags;
  of_flags.optimizer.emplace();
  CHECK(recipe_of(of_flags).weight_decay == 0.01);
  of_flags.optimizer->weight_decay = {0, true, 0};
  CHECK(recipe_of(of_flags).weight_decay == 0);
}

TEST_CASE("config: a curriculum of the sequence length") {
  const char* text = R"({ "train_batch_size": 8, "curriculum_learning": { "enabled": true,
    "curriculum_type": "seqlen", "min_difficulty": 8, "max_difficulty": 1024,
    "schedule_type": "fixed_root", "schedule_config": { "total_curriculum_step": 15000,
    "difficulty_step": 8, "root_degree": 2 } } })";
  const DeepSpeedConfig config = read_text(text);
  REQUIRE(config.curriculum);
  CHECK(config.curriculum->schedule == CurriculumSchedule::fixed_root);
  CHECK(config.curriculum->max_difficulty == 1024);
  CHECK(config.curriculum->total_step == 15000);
  CHECK(config.curriculum->root_degree == 2);
  CHECK(config.findings.empty());
  const DeepSpeedConfig discrete = read_text(R"({ "curriculum_learning": { "enabled": true,
    "curriculum_type": "seqlen", "min_difficulty": 64, "max_difficulty": 512,
    "schedule_type": "fixed_discrete",
    "schedule_config": { "difficulty": [64, 512], "max_step": [100] } } })");
  CHECK(length_phases(*discrete.curriculum, 300) ==
        std::vector<SeqLenPhase>{{64, 100}, {512, 200}});
  // A disabled curriculum may be incomplete. A curriculum with another metric does not change the
  // sequence length.
  CHECK_FALSE(read_text("curriculum_learning: {enabled: false}").curriculum);
  const DeepSpeedConfig other =
      read_text("curriculum_learning: {enabled: true, curriculum_type: \"vocab\"}");
  CHECK_FALSE(other.curriculum);
  CHECK(codes(other.findings) == std::vector<std::string>{"curriculum-not-seqlen"});
}

TEST_CASE("config: curricula that cannot be followed are refused") {
  const auto refused = [](const char* block, const char* sentence) {
    INFO(block);
    CHECK_THROWS_WITH(
        read_text(fmt::format("curriculum_learning: {{enabled: true, curriculum_type: "
                              "\"seqlen\", {}}}",
                              block)),
        Contains(sentence));
  };
  const std::string linear =
      "min_difficulty: 8, max_difficulty: 64, schedule_type: \"fixed_linear\"";
  refused("max_difficulty: 64", "Curriculum learning requires the config 'min_difficulty'");
  refused("min_difficulty: 8", "Curriculum learning requires the config 'max_difficulty'");
  refused("min_difficulty: 8, max_difficulty: 64",
          "Curriculum learning requires the config 'schedule_type'");
  refused("min_difficulty: 8, max_difficulty: 64, schedule_type: \"cosine\"",
          "Unsupported curriculum schedule type (allowed: fixed_linear");
  refused("min_difficulty: 8, max_difficulty: 64, schedule_type: \"custom\"",
          "a custom schedule is a Python function");
  refused(linear.c_str(), "requires the config 'schedule_config'");
  refused((linear + ", schedule_config: {difficulty_step: 8}").c_str(),
          "Curriculum learning with fixed_linear schedule requires the schedule_config "
          "'total_curriculum_step'");
  refused((linear + ", schedule_config: {total_curriculum_step: 100, difficulty_step: 0}").c_str(),
          "schedule_config.difficulty_step: '0' is not a whole number from 1");
  refused((linear + ", schedule_config: {total_curriculum_step: 9007199254740994, "
                    "difficulty_step: 8}")
              .c_str(),
          "schedule_config.total_curriculum_step: '9007199254740994' is not a whole number from 1");
  refused(
      "min_difficulty: 8, max_difficulty: 64, schedule_type: \"fixed_discrete\", "
      "schedule_config: {difficulty: [8, 64], max_step: [1, 2]}",
      "2 difficulties and 2 entries of max_step");
  refused("min_difficulty: 1e9, max_difficulty: 64", "is not a whole number from 1");
}

TEST_CASE("config: errors for wrong types and values name file, line and key") {
  const auto refused = [](const char* text, const char* sentence) {
    INFO(text);
    CHECK_THROWS_WITH(read_text(text), Contains(sentence));
  };
  refused("train_batch_size: 2.5", "ds.json:1: train_batch_size: '2.5' is not a whole number");
  refused("train_batch_size: 1e300", "'1e300' is not a whole number");
  refused("train_batch_size: true", "a boolean is not a whole number");
  refused("train_batch_size: 12345678901234567890", "is not a whole number");
  refused("train_batch_size: NaN", "the text 'NaN' is not a whole number");
  refused("gradient_clipping: Infinity", "the text 'Infinity' is not a number");
  refused("gradient_clipping: -1", "'-1' is not a number of at least 0");
  refused("fp16: true", "fp16: a boolean is not an object");
  refused("fp16: {\n enabled: \"yes\"}", "ds.json:2: fp16.enabled: the text 'yes' is not true or");
  refused("fp16: {enabled: 2}", "'2' is not true or false");
  refused("fp16: {enabled: true, loss_scale: -1}", "'-1' is not a number of at least 0");
  refused("zero_optimization: {stage: 4}", "'4' is not a whole number from 0 to 3");
  refused("zero_optimization: {stage: 2, overlap_com: true}",
          "zero_optimization.overlap_com: DeepSpeed permits no other keys here (pydantic, "
          "extra=\"forbid\"), did you mean 'overlap_comm'?");
  refused("zero_optimization: {stage: 2, offload_optimizer: {devise: \"cpu\"}}",
          "zero_optimization.offload_optimizer.devise");
  refused("optimizer: {type: \"Adam\", params: {betas: [0.9]}}", "is not an array of two numbers");
  refused("optimizer: {type: \"Adam\", params: {betas: [0.9, 2]}}",
          "'2' is not a number from 0 to 1");
  refused("optimizer: {type: \"OneBitAdam\", params: {freeze_step: -1}}",
          "optimizer.params.freeze_step: '-1' is not a whole number of at least 0");
  refused("optimizer: {type: \"OneBitAdam\", params: {freeze_step: null}}",
          "null is not a whole number");
  refused("optimizer: {type: \"ZeroOneAdam\", params: {var_update_scaler: 0}}",
          "'0' is not a whole number of at least 1");
  refused("optimizer: {type: \"OneBitLam\"}",
          "OneBitLam is not a supported DeepSpeed Optimizer, did you mean 'OneBitLamb'? (allowed: "
          "Adam, AdamW, Lamb, OneBitAdam, OneBitLamb, ZeroOneAdam, Lion, Muon)");
  refused("optimizer: {type: \"MuSGD\"}", "lambcast has no model of the optimizer 'MuSGD'");
  refused("optimizer: {type: \"OneBitAdam\", params: {comm_backend_name: \"ncl\"}}",
          "unknown communication backend 'ncl', did you mean 'nccl'? (allowed: nccl, mpi, hccl, "
          "compressed)");
  refused("communication_data_type: \"int8\"",
          "Invalid communication_data_type. Supported data types: ['fp16', 'bf16', 'fp32']. Got: "
          "int8");
}

TEST_CASE("config: a file is read from disk, and a path that is no file is refused") {
  const std::string path = "deepspeed_config_test.json";
  {
    std::ofstream file(path);
    file << with_backend("nccl", "false");
  }
  CHECK(load_config(path).batch.train == 65536);
  CHECK(load_config(path).file == path);
  std::remove(path.c_str());
  CHECK_THROWS_WITH(load_config(path), Contains("cannot be read"));
  CHECK_THROWS_WITH(load_config("."), Contains("cannot be read"));
}

}  // namespace
}  // namespace lambcast::deepspeed
