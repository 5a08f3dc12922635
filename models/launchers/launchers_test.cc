#include "models/launchers/launcher_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <sstream>
#include <string>

#include "models/deepspeed/config.h"
#include "models/launchers/yaml.h"
#include "sim/base/error.h"

namespace lambcast::launchers {
namespace {

using Catch::Matchers::Contains;

constexpr const char* accelerate = R"(compute_environment: LOCAL_MACHINE
distributed_type: DEEPSPEED   # a comment
deepspeed_config:
  zero_stage: 3
  gradient_accumulation_steps: 8
  gradient_clipping: 0.5
  offload_optimizer_device: cpu
  offload_param_device: none
  zero3_init_flag: true
mixed_precision: 'bf16'
num_machines: 2
num_processes: 16
main_process_port: 29500
)";
constexpr const char* fsdp = R"(distributed_type: FSDP
fsdp_config:
  fsdp_version: 2
  fsdp_reshard_after_forward: false
  fsdp_activation_checkpointing: true
  fsdp_offload_params: true
  fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP
mixed_precision: no
num_processes: 8
)";
constexpr const char* factory = R"(model_name_or_path: Qwen/Qwen3-4B
stage: dpo
finetuning_type: lora
lora_rank: 16
lora_target: q_proj,k_proj,v_proj,o_proj
quantization_bit: 4
cutoff_len: 4096
per_device_train_batch_size: 2
gradient_accumulation_steps: 4
max_steps: 300
learning_rate: 1.0e-4
optim: paged_adamw_8bit
bf16: true
deepspeed: ds_z2_config.json
use_unsloth: true
)";
constexpr const char* axolotl = R"(base_model: NousResearch/Llama-2-7b-hf
load_in_8bit: true
adapter: lora
lora_r: 8
lora_target_linear: true
datasets:
  - path: mhenrichsen/alpaca_2k_test
    type: alpaca
sequence_len: 4_096
micro_batch_size: 2
num_epochs: 3
optimizer: adamw_torch
bf16: auto
gradient_checkpointing: offload
tensor_parallel_size: 2
fsdp_config: {reshard_after_forward: true, state_dict_type: FULL_STATE_DICT}
)";

constexpr const char* neox = R"(pipe_parallel_size: 2
model_parallel_size: 2
num_layers: 12
hidden_size: 768
num_attention_heads: 12
num_kv_heads: 4
seq_length: 2048
max_position_embeddings: 4096
pos_emb: rotary
norm: rmsnorm
activation: swiglu
intermediate_size: 8192
mlp_multiple_of: 256
make_vocab_size_divisible_by: 64
no_weight_tying: true
gpt_j_residual: true
gpt_j_tied: true
use_bias_in_mlp: false
use_bias_in_attn_linear: false
hidden_dropout: 0.1
sliding_window_width: 1024
attention_config: [[[flash], all]]
optimizer: {type: OneBitAdam, params: {lr: 0.001, freeze_step: 100}}
zero_optimization: {stage: 0}
train_micro_batch_size_per_gpu: 4
gradient_accumulation_steps: 2
gradient_clipping: 0.5
checkpoint_activations: true
precision: bfloat16
train_iters: 1000
min_lr: 0.00001
te_mha: true
)";

std::string value_of(const LauncherFile& file, std::string_view key) {
  for (const auto& [name, value] : file.what_if)
    if (name == key) return value;
  return {};
}

const LedgerEntry& entry_of(const LauncherFile& file, std::string_view key) {
  const auto found = std::ranges::find(file.ledger, key, &LedgerEntry::key);
  REQUIRE(found != file.ledger.end());
  return *found;
}

std::string refusal(const std::string& text) {
  try {
    decode(text, "a.yaml");
  } catch (const Error& error) {
    CHECK(error.code() == Exit::usage);
    return error.what();
  }
  return {};
}

TEST_CASE("launchers: Accelerate's file gives DeepSpeed's JSON and flags") {
  REQUIRE(is_launcher_file(accelerate));
  const LauncherFile file = decode(accelerate, "a.yaml");
  CHECK(file.program == "Hugging Face Accelerate");
  CHECK(value_of(file, "gpus") == "16");
  CHECK(value_of(file, "gpus_per_node") == "8");
  CHECK(value_of(file, "precision") == "bf16");
  CHECK(value_of(file, "grad_accum") == "8");
  const deepspeed::DeepSpeedConfig config = deepspeed::parse_config(file.config, "json");
  CHECK(config.zero.stage.value == 3);
  CHECK(config.gradient_clipping.value == 0.5);
  REQUIRE(config.layout.size() == 1);
  CHECK(config.layout.front() == std::pair<std::string, std::string>("offload_optimizer", "cpu"));
  CHECK(file.findings.empty());
  CHECK(entry_of(file, "main_process_port").treatment == Treatment::costless);
  const std::string named =
      "distributed_type: DEEPSPEED\ndeepspeed_config:\n"
      "  deepspeed_config_file: ds.json\nuse_cpu: true\n";
  CHECK(decode(named, "a.yaml").config_path == "ds.json");
  CHECK(decode(named, "a.yaml").config.empty());
  CHECK(entry_of(decode(named, "a.yaml"), "use_cpu").treatment == Treatment::named);
}

TEST_CASE("launchers: Accelerate's FSDP and Megatron-LM") {
  const LauncherFile file = decode(fsdp, "a.yaml");
  CHECK(value_of(file, "framework") == "torchtitan");
  CHECK(value_of(file, "zero_stage") == "2");
  CHECK(value_of(file, "recompute") == "full");
  CHECK(value_of(file, "precision") == "fp32");
  REQUIRE(file.findings.size() == 1);
  CHECK_THAT(file.findings[0].message, Contains("a.yaml:6: fsdp_config.fsdp_offload_params: "));
  const LauncherFile first = decode(
      "distributed_type: FSDP\nnum_machines: 2\nnum_processes: 16\nfsdp_config:\n"
      "  fsdp_sharding_strategy: HYBRID_SHARD\n",
      "a.yaml");
  CHECK(value_of(first, "zero_stage") == "3");
  CHECK(value_of(first, "shard_groups") == "2");
  const LauncherFile megatron = decode(
      "distributed_type: MEGATRON_LM\nmegatron_lm_config:\n  megatron_lm_tp_degree: 2\n"
      "  megatron_lm_pp_degree: 4\n  megatron_lm_use_distributed_optimizer: true\n",
      "a.yaml");
  CHECK(value_of(megatron, "tp") == "2");
  CHECK(value_of(megatron, "pp") == "4");
  CHECK(value_of(megatron, "zero_stage") == "1");
  CHECK_THAT(refusal("distributed_type: NO\nmixed_precision: int8\n"),
             Contains("a.yaml:2: mixed_precision: unknown precision 'int8' (allowed: no, fp16"));
  CHECK_THAT(refusal("distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 7\n"),
             Contains("a.yaml:3: deepspeed_config.zero_stage: unknown stage 7 (allowed: 0, 1, 2"));
  CHECK_THAT(refusal("distributed_type: XLA\n"),
             Contains("a.yaml:1: distributed_type: xla is not modelled (allowed: NO, MULTI_GPU"));
}

TEST_CASE("launchers: LLaMA-Factory's file gives LoRA on quantized weights") {
  const LauncherFile file = decode(factory, "f.yaml");
  CHECK(file.config_path == "ds_z2_config.json");
  for (const auto& [key, value] : {std::pair("lora_rank", "16"),
                                   {"lora_targets", "attention"},
                                   {"optimizer", "adamw"},
                                   {"model.quantized_bits", "4.126953125"},
                                   {"seq_len", "4096"},
                                   {"micro_batch", "2"},
                                   {"grad_accum", "4"},
                                   {"steps", "300"},
                                   {"precision", "bf16"},
                                   {"recompute", "full"}}) {
    CAPTURE(key);
    CHECK(value_of(file, key) == value);
  }
  CHECK(value_of(file, "framework").empty());
  REQUIRE(file.findings.size() == 4);
  CHECK_THAT(file.findings[0].message, Contains("f.yaml:2: stage: a reference or reward model"));
  CHECK_THAT(file.findings[1].message, Contains("f.yaml:7: cutoff_len: samples are assumed to be"));
  CHECK_THAT(file.findings[2].message, Contains("f.yaml:12: optim: states of 8 bits"));
  CHECK_THAT(file.findings[3].message,
             Contains("f.yaml:15: use_unsloth: not modelled: the forecast is of a run without it"));
  CHECK_THAT(refusal("finetuning_type: oft\n"),
             Contains("oft is not modelled (allowed: lora, full"));
  for (const char* untrained : {"infer_backend: vllm\n", "export_dir: x\n"})
    CHECK_THAT(refusal(untrained), Contains("trains nothing"));
  CHECK_THAT(refusal("model: x\nmodel_class: llm\n"),
             Contains("a.yaml:2: model_class: belongs to"));
  CHECK_THAT(refusal("finetuning_type: full\noptim: shampoo\n"),
             Contains("shampoo is not modelled"));
}

TEST_CASE("launchers: axolotl's file") {
  const LauncherFile file = decode(axolotl, "x.yml");
  for (const auto& [key, value] : {std::pair("lora_rank", "8"),
                                   {"lora_targets", "all"},
                                   {"model.quantized_bits", "8"},
                                   {"seq_len", "4096"},
                                   {"micro_batch", "2"},
                                   {"grad_accum", "1"},
                                   {"precision", "bf16"},
                                   {"recompute", "full"},
                                   {"tp", "2"},
                                   {"framework", "torchtitan"},
                                   {"zero_stage", "3"}}) {
    CAPTURE(key);
    CHECK(value_of(file, key) == value);
  }
  CHECK(entry_of(file, "datasets").treatment == Treatment::costless);
  CHECK(entry_of(file, "base_model").treatment == Treatment::costless);
  const std::string reward =
      std::string(axolotl) + "model_type: AutoModelForSequenceClassification\n";
  CHECK(entry_of(decode(reward, "x.yml"), "model_type").treatment == Treatment::named);
  CHECK(entry_of(file, "num_epochs").treatment == Treatment::named);
  CHECK(entry_of(file, "gradient_checkpointing").treatment == Treatment::named);
}

TEST_CASE("launchers: GPT-NeoX's file gives a model and DeepSpeed's JSON") {
  const std::string text = R"(# Pythia 160M
{
   "pipe-parallel-size": 0, # 0 is no pipeline
   "model-parallel-size": 2,
   "num-layers": 12, "hidden-size": 768, "num-attention-heads": 12,
   "seq-length": 2048, "max-position-embeddings": 2048,
   "pos-emb": "rotary", "no-weight-tying": true, "gpt-j-residual": true,
   "attention-config": [[["flash"], 12]],
   "optimizer": {"type": "OneBitAdam", "params": {"lr": 0.001, "freeze_step": 100}},
   "zero_optimization": {"stage": 0},
   "train_micro_batch_size_per_gpu": 4,
   "checkpoint-activations": true, "partition-activations": true,
   "fp16": {"fp16": true, "enabled": true, "type": "bfloat16"},
   "rotary-ndims": 16,
   "train-iters": 1000,
}
)";
  REQUIRE(is_launcher_file(text));
  const LauncherFile file = decode(text, "n.yml");
  CHECK(file.program == "GPT-NeoX");
  for (const auto& [key, value] : {std::pair("tp", "2"),
                                   {"pp", "1"},
                                   {"seq_len", "2048"},
                                   {"steps", "1000"},
                                   {"recompute", "full"},
                                   {"attention", ""}}) {
    CAPTURE(key);
    CHECK(value_of(file, key) == value);
  }
  for (const char* line : {"ffn = 3072", "gated = false", "parallel_block = true", "norms = 2",
                           "vocab_multiple = 256"})
    CHECK_THAT(file.model, Contains(line));
  CHECK_THAT(file.model, !Contains("tied_head") && !Contains("positions = "));
  const deepspeed::DeepSpeedConfig config = deepspeed::parse_config(file.config, "json");
  CHECK(config.bf16_enabled.value);
  CHECK(config.batch.micro == 4);
  CHECK(config.gradient_clipping.value == 1.0);
  REQUIRE(config.optimizer.has_value());
  CHECK(entry_of(file, "rotary_ndims").treatment == Treatment::named);
  CHECK(entry_of(file, "partition_activations").treatment == Treatment::named);
  // In LLaMA 7B, gate and up each have a third of the width, rounded up to a multiple.
  const LauncherFile llama = decode(
      "pipe_parallel_size: 1\nnum_layers: 32\nhidden_size: 4096\nnum_attention_heads: 32\n"
      "seq_length: 2048\nactivation: swiglu\nintermediate_size: 32768\nmlp_multiple_of: 256\n",
      "n.yml");
  CHECK_THAT(llama.model, Contains("ffn = 11008\n") && Contains("tied_head = true") &&
                              Contains("positions = 2048"));
  CHECK(value_of(llama, "attention") == "unfused");
  CHECK_THAT(refusal("pipe_parallel_size: 1\n"), Contains("a.yaml:1: hidden_size: is missing"));
  CHECK_THAT(refusal("{\n'pipe-parallel-size': 1, num-layers: 2, hidden-size: 8,\n"
                     "num-attention-heads: 2, seq-length: 8,\n"
                     "attention-config: [[[mamba], all]]}"),
             Contains("a.yaml:4: attention_config: mamba is not modelled"));
  CHECK_FALSE(is_launcher_file("{\n# \"pipe_parallel_size\": 1\n\"train_batch_size\": 8}"));
}

// For each key, leaving it out changes the run, or the ledger states why it does not.
TEST_CASE("launchers: no key is ignored silently") {
  for (const char* text : {accelerate, fsdp, factory, axolotl, neox}) {
    const LauncherFile whole = decode(text, "a.yaml");
    const auto asked = [](const LauncherFile& file) {
      return fmt::format("{} {} {} {}", fmt::join(file.what_if, ";"), file.config, file.config_path,
                         file.model);
    };
    for (const LedgerEntry& entry : whole.ledger) {
      std::istringstream lines(text);
      std::string line, without;
      for (int number = 1; std::getline(lines, line); ++number)
        if (number != entry.line) without += line + "\n";
      CAPTURE(entry.key);
      constexpr std::string_view needed[] = {"num_layers", "hidden_size", "num_attention_heads",
                                             "seq_length"};
      if (std::ranges::find(needed, entry.key) != std::end(needed)) {
        CHECK_THROWS_WITH(decode(without, "a.yaml"), Contains("is missing"));
        continue;
      }
      if (entry.treatment != Treatment::applied || !is_launcher_file(without)) continue;
      // These keys have their default values in the files above, so leaving them out changes
      // nothing.
      constexpr std::string_view defaults[] = {
          "finetuning_type",          "deepspeed_config.offload_param_device",
          "mixed_precision",          "lora_r",
          "lora_target_linear",       "optimizer",
          "fsdp_config.fsdp_version", "fsdp_config.reshard_after_forward"};
      const bool is_default = std::ranges::find(defaults, entry.key) != std::end(defaults);
      CHECK((is_default || asked(decode(without, "a.yaml")) != asked(whole)));
    }
  }
}

TEST_CASE("launchers: the keys that a file's ledger applies are in the program's list") {
  const auto programs = keys_by_program();
  CHECK(programs.size() == 4);
  for (const char* text : {accelerate, fsdp, factory, axolotl, neox}) {
    const LauncherFile file = decode(text, "a.yaml");
    for (const LedgerEntry& entry : file.ledger) {
      CAPTURE(entry.key);
      const KeysOfFormat& known = programs.at(file.program);
      CHECK((entry.treatment != Treatment::applied || known.applied.contains(entry.key)));
    }
  }
}

TEST_CASE("YAML: maps, lists, scalars and refused text") {
  const hjson::Value root = parse_yaml(
      "---\na: 1_000\nb: \"x: # y\"\nc:\n- 1\n- {d: [2, 'it''s'], e: no}\n- f: 3\n  g:\n    - h\n"
      "i: |\n  text\n  more\nj: 1e-5  # k\nl: ~\nm: v1.2\n",
      "y.yaml");
  CHECK(root.find("a")->whole == 1000);
  CHECK(root.find("b")->text == "x: # y");
  REQUIRE(root.find("c")->items.size() == 3);
  CHECK(root.find("c")->items[1].find("d")->items[1].text == "it's");
  CHECK(root.find("c")->items[1].find("e")->kind == hjson::Kind::boolean);
  CHECK(root.find("c")->items[2].find("g")->items[0].text == "h");
  CHECK(root.find("i")->text == "text\nmore\n");
  CHECK(root.find("j")->number == 1e-5);
  CHECK(root.find("l")->kind == hjson::Kind::null);
  CHECK(root.find("m")->text == "v1.2");
  for (const auto& [text, words] :
       {std::pair("a: 1\na: 2\n", "y.yaml:2: YAML: the key a twice"),
        {"a: !python/name:x 1\n", "y.yaml:1: YAML: the tag !python/name:x is not read"},
        {"a: 1\n   b: 2\n", "y.yaml:2: YAML: "},
        {"a: 1\n---\nb: 2\n", "y.yaml:3: YAML: a second document"},
        {"a:\n\tb: 1\n", "y.yaml:2: YAML: "},
        {"a: [1, 2\n", "y.yaml:1: YAML: "},
        {"a: 'x\nb: 2\n", "y.yaml:1: YAML: a quote is not closed"},
        {"a: 1\nb: \x04\nc: 2\n", "y.yaml:2: YAML: a control character (byte 4)"},
        {"? [1, 2]\n: 3\n", "y.yaml:1: YAML: a key is a list or a map"},
        {"a: *x\n", "y.yaml:1: YAML: "},
        {"a: &x [*x]\n", "y.yaml:1: YAML: an alias within its own anchor"},
        {"<<: {a: 1}\n<<: {b: 2}\n", "y.yaml:2: YAML: the key << twice"},
        {"a: 1\n<<: 2\n", "y.yaml:2: YAML: << merges what is not a map"},
        {"just words\n", "y.yaml:1: YAML: is not a map of keys"}}) {
    CAPTURE(text);
    CHECK_THROWS_WITH(parse_yaml(text, "y.yaml"), Contains(words));
  }
}

TEST_CASE("YAML: aliases are copies, merge keys add what a map lacks") {
  const hjson::Value root = parse_yaml(
      "base: &base\n  lr: 1e-4\n  bf16: on\nrun:\n  <<: *base\n  lr: 2\nagain: [*base, \"on\"]\n"
      "none:\nword: !!str 3\nlong: one\n  two\n",
      "y.yaml");
  CHECK(root.find("run")->find("lr")->whole == 2);
  CHECK(root.find("run")->find("bf16")->boolean);
  CHECK(root.find("run")->members.size() == 2);
  CHECK(root.find("again")->items[0].find("lr")->number == 1e-4);
  CHECK(root.find("again")->items[1].kind == hjson::Kind::string);
  CHECK(root.find("none")->kind == hjson::Kind::null);
  CHECK(root.find("none")->line == 8);
  CHECK(root.find("word")->kind == hjson::Kind::string);
  CHECK(root.find("long")->text == "one two");
}

TEST_CASE("YAML: multiplying aliases, deep nesting and long texts are limited") {
  std::string bomb = "a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]\n", deep = "a: ", blocks;
  for (int i = 1; i < 12; ++i) {
    bomb += fmt::format("a{}: &a{} [", i, i);
    for (int j = 0; j < 10; ++j) bomb += fmt::format("*a{},", i - 1);
    bomb += "]\n";
  }
  CHECK_THROWS_WITH(parse_yaml(bomb, "y.yaml"), Contains("has too many values"));
  for (int i = 0; i < 100'000; ++i) deep += i < 50'000 ? "[" : "]";
  CHECK_THROWS_WITH(parse_yaml(deep, "y.yaml"), Contains("nested too deeply"));
  std::string chain = "a0: &a0 [1]\n";
  for (int i = 1; i < 200; ++i) chain += fmt::format("a{}: &a{} [*a{}]\n", i, i, i - 1);
  CHECK_THROWS_WITH(parse_yaml(chain, "y.yaml"), Contains("nested too deeply"));
  std::string anchors = "a: ";
  for (int i = 0; i < 90; ++i) anchors += fmt::format("&a{} [", i);
  for (int i = 0; i < 5000; ++i) anchors += "1,";
  CHECK_THROWS_WITH(parse_yaml(anchors + std::string(90, ']'), "y.yaml"),
                    Contains("has too many values"));
  for (int i = 0; i < 2000; ++i) blocks += fmt::format("k{}: {}\n", i, i);
  CHECK(parse_yaml(blocks, "y.yaml").members.size() == 2000);
  CHECK_THROWS_WITH(parse_yaml(blocks + "last: 1\n", "y.yaml"), Contains("has too many keys"));
}

TEST_CASE("launchers: YAML of other programs is refused by their names") {
  const std::pair<const char*, const char*> files[] = {
      {"model:\n  _component_: torchtune.models.llama3.llama3_8b\nbatch_size: 2\n", "torchtune"},
      {"trainer:\n  devices: 8\nmodel:\n  micro_batch_size: 4\n", "NeMo, Lightning or Levanter"},
      {"apiVersion: v1\nkind: Job\n", "Kubernetes"},
      {"max_seq_len: 2048\nmodel:\n  name: mpt\n", "LLM Foundry"},
      {"per_device_train_batch_size: 4\nbf16: true\n", "Hugging Face's Trainer"}};
  for (const auto& [text, name] : files) {
    REQUIRE(is_launcher_file(text));
    CHECK_THROWS_WITH(decode(text, "run.yaml"),
                      Contains("run.yaml:") && Contains(std::string("is a key of ") + name));
  }
  CHECK_FALSE(is_launcher_file(R"({"train_batch_size": 8, "trainer": 1})"));
  CHECK(decode(R"({"stage": "sft", "finetuning_type": "lora", "cutoff_len": 512, "bf16": true})",
               "a.json")
            .program == "LLaMA-Factory");
}

TEST_CASE("launchers: a map in braces is read as one of lines") {
  const LauncherFile file = decode(
      "{compute_environment: LOCAL_MACHINE, distributed_type: DEEPSPEED, deepspeed_config: "
      "{zero_stage: 2}, mixed_precision: fp16, num_processes: 8}",
      "a.yaml");
  CHECK(file.program == "Hugging Face Accelerate");
  CHECK_THAT(file.config, Contains("\"stage\": 2"));
}

}  // namespace
}  // namespace lambcast::launchers
