#include "validate/program/log_settings.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "sim/base/error.h"
#include "validate/program/log_against_flags.h"
#include "validate/program/training_log.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

// Returns Megatron-LM's print of its arguments: names, dots up to column 48, Python's values.
std::string megatron_arguments(const std::string& tp = "2") {
  const std::pair<const char*, std::string> values[] = {
      {"add_bias_linear", "False"},
      {"attention_backend", "AttnBackend.auto"},
      {"attention_dropout", "0.0"},
      {"bf16", "True"},
      {"cp_comm_type", "['p2p']"},
      {"context_parallel_size", "1"},
      {"encoder_num_layers", "32"},
      {"encoder_seq_length", "4096"},
      {"exp_avg_dtype", "torch.float32"},
      {"expert_model_parallel_size", "1"},
      {"expert_tensor_parallel_size", tp},
      {"ffn_hidden_size", "11008"},
      {"fp16", "False"},
      {"fp8", "None"},
      {"fp8_recipe", "delayed"},
      {"global_batch_size", "64"},
      {"group_query_attention", "False"},
      {"hidden_dropout", "0.0"},
      {"hidden_size", "4096"},
      {"hybrid_attention_ratio", "0.0"},
      {"kv_channels", "128"},
      {"make_vocab_size_divisible_by", "128"},
      {"mask_prob", "0.15"},
      {"max_position_embeddings", "4096"},
      {"micro_batch_size", "1"},
      {"moe_layer_freq", "1"},
      {"normalization", "RMSNorm"},
      {"num_attention_heads", "32"},
      {"num_experts", "None"},
      {"num_layers", "32"},
      {"num_query_groups", "1"},
      {"optimizer", "adam"},
      {"overlap_grad_reduce", "True"},
      {"overlap_param_gather", "True"},
      {"params_dtype", "torch.bfloat16"},
      {"pipeline_model_parallel_size", "1"},
      {"position_embedding_type", "rope"},
      {"rampup_batch_size", "['16', '16', '1000']"},
      {"recompute_granularity", "None"},
      {"seq_length", "4096"},
      {"sequence_parallel", "True"},
      {"swiglu", "True"},
      {"tensor_model_parallel_size", tp},
      {"train_iters", "100"},
      {"transformer_impl", "transformer_engine"},
      {"untie_embeddings_and_output_weights", "True"},
      {"use_distributed_optimizer", "True"},
      {"vocab_size", "None"},
      {"world_size", "8"}};
  std::string text = "using world size: 8, data-parallel size: 4\n";
  text += "------------------------ arguments ------------------------\n";
  for (const auto& [name, value] : values)
    text += fmt::format("0:   {:.<48} {}\n", std::string(name) + " ", value);
  return text +
         "-------------------- end of arguments ---------------------\n"
         " > padded vocab (size: 31900) with 100 dummy tokens (new size: 32000)\n";
}

std::string megatron_steps(int batch = 64) {
  std::string text;
  for (int i = 1; i <= 30; ++i)
    text += fmt::format(
        "7:  iteration {:8}/ 100 | elapsed time per iteration (ms): {:.1f} | global batch size: "
        "{:5} | number of skipped iterations:   0 |\n",
        i * 10, 3020.0 + i % 3, batch);
  return text;
}

struct Filled {
  SourceFigure figure;
  std::string sentence;
};

Filled filled(const std::string& text, const WhatIf& asked) {
  const TrainingLog log = read_training_log(text, "run.log");
  Filled of;
  of.figure = figure_of(log, "run.log", asked, of.sentence);
  check_against_log(settings_of(log), "run.log", of.figure);
  return of;
}

std::string refusal(const std::string& text, WhatIf asked) {
  try {
    filled(text, asked);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("log settings: Megatron-LM's arguments describe the whole run") {
  const Filled of = filled(megatron_arguments() + megatron_steps(), {{"cluster", "dgx-a100-80g"}});
  const WhatIf& said = of.figure.what_if;
  CHECK(said.at("gpus") == "8");
  CHECK(said.at("tp") == "2");
  CHECK(said.at("micro_batch") == "1");
  CHECK(said.at("global_batch") == "64");
  CHECK(said.at("seq_len") == "4096");
  CHECK(said.at("precision") == "bf16");
  CHECK(said.at("zero_stage") == "1");
  CHECK(said.at("framework") == "megatron");
  CHECK_FALSE(said.contains("steps"));
  CHECK_FALSE(said.contains("rampup_batch_size"));
  CHECK_THAT(of.figure.texts.at("model ./run.log as a model"), Contains("layers = 32\n"));
  CHECK_THAT(of.figure.texts.at("model ./run.log as a model"), Contains("family = 'llama'"));
  CHECK_THAT(of.figure.texts.at("model ./run.log as a model"), Contains("vocab = 32000\n"));
  CHECK_THAT(of.sentence, Contains("--tp 2 (line 45)"));
  CHECK_THAT(of.sentence, Contains("--model, by its arguments"));
}

TEST_CASE("log settings: each flag that contradicts Megatron-LM's arguments is refused by line") {
  const std::string text = megatron_arguments() + megatron_steps();
  struct Case {
    const char *key, *value;
    std::string sentence;
  };
  const Case cases[] = {
      {"tp", "4", "--tp: 4 contradicts the log, run.log:45: tensor-model-parallel-size is 2"},
      {"pp", "2", "--pp: 2 contradicts the log, run.log:38"},
      {"gpus", "16", "--gpus: 16 contradicts the log, run.log:51: world-size is 8"},
      {"nodes", "2", "--gpus: 16 contradicts the log, run.log:51"},
      {"seq_len", "2048", "--seq-len: 2048 contradicts the log, run.log:42"},
      {"micro_batch", "2", "--micro-batch: 2 contradicts the log, run.log:27"},
      {"global_batch", "128", "--global-batch: 128 contradicts the log, run.log:83: the batch of"},
      {"precision", "fp16", "--precision: fp16 contradicts the log, run.log:6"},
      {"recompute", "full", "--recompute: full contradicts the log, run.log:41"},
      {"framework", "paddle", "--framework: paddle contradicts the log, run.log:"},
      {"optimizer", "lamb", "--optimizer: lamb contradicts the log, run.log:34: optimizer is adam"},
      {"model.layers", "40", "--model (model.layers): 40 contradicts the log, run.log:32"},
      {"model.vocab", "64000",
       "--model (model.vocab): 64000 contradicts the log, run.log:53: padded"},
      {"model", "llama2-13b", "--model (model.layers): 40 contradicts the log, run.log:32"}};
  for (const Case& one : cases) {
    INFO(one.key);
    CHECK_THAT(refusal(text, {{"cluster", "dgx-a100-80g"}, {one.key, one.value}}),
               Contains(one.sentence));
  }
  CHECK(refusal(text, {{"cluster", "dgx-a100-80g"},
                       {"model", "llama2-7b"},
                       {"gpus", "8"},
                       {"framework", "nemo"}}) == "");
}

TEST_CASE("log settings: the batch of the steps takes precedence over that of the arguments") {
  CHECK(filled(megatron_arguments() + megatron_steps(32), {{"cluster", "dgx-a100-80g"}})
            .figure.what_if.at("global_batch") == "32");
}

TEST_CASE("log settings: the last start of a job counts, with its steps") {
  std::string before = megatron_steps();
  for (auto at = before.find("302"); at != before.npos; at = before.find("302", at + 3))
    before.replace(at, 3, "402");
  const std::string text = megatron_arguments("4") + before + megatron_arguments("2");
  const Filled of = filled(text + megatron_steps(), {{"cluster", "dgx-a100-80g"}});
  CHECK(of.figure.what_if.at("tp") == "2");
  CHECK(of.figure.measured == Approx(3.021).margin(0.002));
  // The last start has made no step yet, so those of the earlier start count.
  CHECK(filled(text, {{"cluster", "dgx-a100-80g"}}).figure.measured == Approx(4.021).margin(0.002));
}

TEST_CASE("log settings: an accumulation that gives another batch is refused") {
  CHECK_THAT(refusal(megatron_arguments() + megatron_steps(),
                     {{"cluster", "dgx-a100-80g"}, {"micro_batch", "1"}, {"grad_accum", "8"}}),
             Contains("--global-batch: 32 contradicts the log, run.log:83"));
}

// The sizes do not divide the GPUs of the same log.
TEST_CASE("log settings: a log that contradicts itself is refused with both lines") {
  const WhatIf asked{{"cluster", "dgx-a100-80g"}};
  std::string text = megatron_arguments("2") + megatron_steps();
  for (const char* size : {"3", "16"}) {
    std::string other = megatron_arguments(size) + megatron_steps();
    CHECK_THAT(refusal(other, asked),
               Contains("contradicts line 51 of the log") && Contains("where world-size is 8"));
  }
  // `world_size` of DeepSpeed counts data-parallel ranks: 4 for 8 GPUs and tp 2.
  const auto with_ranks = [&](int ranks) {
    return refusal(fmt::format("  world_size ................... {}\n", ranks) + text, asked);
  };
  for (const int ranks : {1, 2, 3, 8, 16})
    CHECK_THAT(with_ranks(ranks), Contains("of the log, where world-size is 8"));
  CHECK(with_ranks(4) == "");
}

TEST_CASE("log settings: attention is compared, and filled if it is stated") {
  std::string text = megatron_arguments() + megatron_steps();
  const WhatIf asked{{"cluster", "dgx-a100-80g"}};
  WhatIf unfused = asked;
  unfused["attention"] = "unfused";
  CHECK(refusal(text, unfused) == "");  // the backend is `auto`
  text.replace(text.find("AttnBackend.auto"), 16, "AttnBackend.flash");
  CHECK_THAT(refusal(text, unfused),
             Contains("--attention: unfused contradicts the log, run.log:"));
  CHECK_FALSE(filled(text, asked).figure.what_if.contains("attention"));
  WhatIf flash = asked;
  flash["attention"] = "flash2";
  CHECK(refusal(text, flash) == "");
  text.replace(text.find("AttnBackend.flash"), 17, "AttnBackend.unfused");
  CHECK(filled(text, asked).figure.what_if.at("attention") == "unfused");
  CHECK_THAT(refusal(text, flash), Contains("--attention: flash2 contradicts the log, run.log:"));
}

const WhatIf bert{{"cluster", "dgx-a100-80g"}, {"model", "bert-large"}, {"optimizer", "adam"}};

TEST_CASE("log settings: DeepSpeed's configuration gives batch, stage, precision and GPUs") {
  std::string text =
      "[INFO] [config.py:1000:print] DeepSpeedEngine configuration:\n"
      "[INFO] [config.py:1004:print]   bfloat16_enabled ............. False\n"
      "[INFO] [config.py:1004:print]   fp16_enabled ................. True\n"
      "[INFO] [config.py:1004:print]   gradient_accumulation_steps .. 4\n"
      "[INFO] [config.py:1004:print]   world_size ................... 8\n"
      "[INFO] [config.py:990:print_user_config]   json = {\n"
      "    \"train_batch_size\": 512, \n"
      "    \"train_micro_batch_size_per_gpu\": 16, \n"
      "    \"zero_optimization\": {\n        \"stage\": 2\n    }\n}\n"
      "[INFO] [config.py:1004:print]   optimizer_name ............... adam\n";
  for (int i = 0; i < 12; ++i) text += "global_step=10, CurrSamplesPerSec=842.0, Mem\n";
  const WhatIf said = filled(text, bert).figure.what_if;
  CHECK(said.at("dp") == "8");
  CHECK(said.at("global_batch") == "512");
  CHECK(said.at("zero_stage") == "2");
  CHECK(said.at("precision") == "fp16");
  CHECK(said.at("framework") == "deepspeed");
  WhatIf other = bert;
  other["gpus"] = "16";
  CHECK_THAT(refusal(text, other), Contains("--dp: 16 contradicts the log, run.log:5"));
  other = bert;
  other["zero_stage"] = "1";
  CHECK_THAT(refusal(text, other), Contains("--zero-stage: 1 contradicts the log, run.log:10"));
  other = bert;
  other["optimizer"] = "lamb";
  CHECK_THAT(refusal(text, other), Contains("--optimizer: lamb contradicts the log, run.log:13"));
}

TEST_CASE("log settings: Megatron-DeepSpeed's stage is that of DeepSpeed's configuration") {
  std::string text = "------------------------ arguments ------------------------\n";
  const std::pair<const char*, const char*> values[] = {
      {"checkpoint_activations", "True"},
      {"deepspeed", "True"},
      {"fp16", "True"},
      {"global_batch_size", "64"},
      {"hidden_size", "2048"},
      {"micro_batch_size", "2"},
      {"num_attention_heads", "16"},
      {"num_experts", "[1]"},
      {"num_layers", "24"},
      {"pipeline_model_parallel_size", "2"},
      {"position_embedding_type", "PositionEmbeddingType.absolute"},
      {"seq_length", "2048"},
      {"tensor_model_parallel_size", "2"},
      {"topk", "1"},
      {"world_size", "16"},
      {"zero_stage", "2.0"}};
  for (const auto& [name, value] : values)
    text += fmt::format("[default0]:  {:.<48} {}\n", std::string(name) + " ", value);
  text += "-------------------- end of arguments ---------------------\n";
  text += " > padded vocab (size: 50257) with 47 dummy tokens (new size: 50304)\n";
  text += "[INFO] [config.py:1004:print]   zero_optimization_stage ...... 1\n";
  for (int i = 0; i < 12; ++i)
    text +=
        "[default7]: iteration 5/ 10 | elapsed time per iteration (s): 5.22 | global batch "
        "size: 64 |\n";
  const Filled of = filled(text, {{"cluster", "dgx-a100-80g"}});
  CHECK(of.figure.what_if.at("zero_stage") == "1");
  CHECK(of.figure.what_if.at("framework") == "deepspeed");
  CHECK(of.figure.what_if.at("recompute") == "full");
  CHECK(of.figure.what_if.at("gpus") == "16");
  CHECK_THAT(of.figure.texts.at("model ./run.log as a model"), Contains("family = 'gpt'"));
}

TEST_CASE("log settings: the Trainer's batch, and NeMo's layout and processes") {
  const std::string trainer =
      "***** Running training *****\n  Num examples = 1,000\n"
      "  Instantaneous batch size per device = 16\n"
      "  Total train batch size (w. parallel, distributed & accumulation) = 1,024\n"
      "  Gradient Accumulation steps = 8\n"
      "{'train_runtime': 3021.4, 'train_samples_per_second': 842.0, 'epoch': 1.0}\n";
  WhatIf asked = bert;
  asked["gpus"] = "8";
  CHECK(filled(trainer, asked).figure.what_if.at("global_batch") == "1024");
  asked["gpus"] = "16";
  CHECK_THAT(refusal(trainer, asked), Contains("--grad-accum: 4 contradicts the log, run.log:5"));

  // Only the final record gives the batch, within its rounding: here 63.99 samples per step.
  const std::string record =
      R"({"log_history": [{"train_samples_per_second": 21.18, "train_steps_per_second": 0.331}]})";
  for (const char* line :
       {"{'train_samples_per_second': 21.18, 'train_steps_per_second': 0.331}\n", record.c_str()}) {
    WhatIf batch = bert;
    batch.insert({{"gpus", "8"}, {"micro_batch", "8"}, {"grad_accum", "1"}});
    CHECK(refusal(line, batch) == "");
    batch["grad_accum"] = "2";
    CHECK_THAT(refusal(line, batch), Contains("--global-batch: 128 contradicts the log, run.log: "
                                              "samples over steps a second is 64"));
  }

  std::string nemo =
      "All distributed processes registered. Starting with 8 processes\n"
      "  tensor_model_parallel_size: 2\n  pipeline_model_parallel_size: 1\n  num_layers: 24\n"
      "  micro_batch_size: 4\n";
  for (int i = 0; i < 12; ++i)
    nemo += "iteration 19/999 | global_batch_size: 64 | train_step_timing in s: 3.021\n";
  const WhatIf said = filled(nemo, bert).figure.what_if;
  CHECK(said.at("gpus") == "8");
  CHECK(said.at("tp") == "2");
  CHECK(said.at("global_batch") == "64");
  CHECK(said.at("framework") == "nemo");
  WhatIf base = bert;
  base["model"] = "bert-base";
  CHECK_THAT(refusal(nemo, base), Contains("--model (model.layers): 12 contradicts the log"));
}

TEST_CASE("log settings: torchtitan's job gives the settings, and its mesh the GPUs") {
  std::string text =
      "[titan] - root - INFO - Running with configs: {\"model\": {\"name\": \"llama3\", "
      "\"flavor\": \"8B\"}, \"training\": {\"local_batch_size\": 2, \"global_batch_size\": -1, "
      "\"seq_len\": 8192, \"steps\": 100}, \"parallelism\": {\"tensor_parallel_degree\": 2}, "
      "\"activation_checkpoint\": {\"mode\": \"full\"}, \"comm\": {\"trace_buf_size\": 1}}\n"
      "[titan] - root - INFO - Building 2-D device mesh with ['dp_shard', 'tp'], [8, 2]\n";
  for (int i = 0; i < 12; ++i) text += "step: 20  loss: 5.1  tps: 3,845  tflops: 466.20\n";
  const WhatIf asked{{"cluster", "hgx-h100-ndr"}};
  const WhatIf said = filled(text, asked).figure.what_if;
  CHECK(said.at("model") == "llama3-8b");
  CHECK(said.at("gpus") == "16");
  CHECK(said.at("tp") == "2");
  CHECK(said.at("recompute") == "full");
  CHECK(said.at("seq_len") == "8192");
  WhatIf other = asked;
  other["seq_len"] = "4096";
  CHECK_THAT(refusal(text, other), Contains("--seq-len: 4096 contradicts the log, run.log:1"));
  const std::tuple<const char*, const char*, const char*> others[] = {
      {"model", "llama3-70b",
       "--model (model.layers): 80 contradicts the log, run.log:1: layers of"},
      {"model.vocab", "32000", "--model (model.vocab): 32000 contradicts the log, run.log:1"},
      {"fusion", "compiled", "--fusion: compiled contradicts the log, run.log:1"},
      {"optimizer", "lamb", "--optimizer: lamb contradicts the log, run.log:1"}};
  for (const auto& [key, value, sentence] : others) {
    INFO(key);
    other = asked;
    other[key] = value;
    CHECK_THAT(refusal(text, other), Contains(sentence));
  }
  other = asked;
  other["optimizer"] = "adam";
  CHECK(refusal(text, other) == "");
  // The mesh contradicts the job.
  std::string meshed = text;
  meshed.replace(meshed.find("[8, 2]"), 6, "[4, 4]");
  CHECK_THAT(refusal(meshed, asked),
             Contains("run.log:2: device mesh, tp: 4 contradicts line 1 of the log"));
}

}  // namespace
}  // namespace lambcast
