#include "experiments/scenario/run_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "experiments/output/input_ledger.h"
#include "experiments/scenario/scenario_case.h"
#include "sim/base/temporary_folder.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

const std::string arguments = R"(--num-layers 24 --hidden-size 1024 --num-attention-heads 16
--seq-length 1024 --max-position-embeddings 1024 --vocab-size 50257 --micro-batch-size 2
--global-batch-size 64 --tensor-model-parallel-size 2 --pipeline-model-parallel-size 4 --bf16
--use-distributed-optimizer --train-iters 300
)";

TEST_CASE("run files: Megatron's arguments are a what-if, and flags override them") {
  TemporaryFolder folder;
  WhatIf asked{{"megatron_args", folder.file("args.txt", arguments)},
               {"cluster", "dgx-a100-80g"},
               {"gpus", "16"}};
  const TrainingPlan training = resolved(asked).training;
  REQUIRE(training.parallelism);
  CHECK(training.parallelism->layout.tp == 2);
  CHECK(training.parallelism->layout.pp == 4);
  CHECK(training.parallelism->layout.dp == 2);
  CHECK(training.batch.train == 64);
  CHECK(training.batch.gas == 16);
  CHECK(training.steps == 300);
  CHECK(training.model->layers == 24);
  asked["pp"] = "2";
  asked.insert_or_assign("global_batch", "128");
  const TrainingPlan changed = resolved(asked).training;
  CHECK(changed.parallelism->layout.pp == 2);
  CHECK(changed.batch.train == 128);
  CHECK(changed.batch.micro == 2);
}

TEST_CASE("run files: a GPU count from a flag keeps the script's GPUs per node") {
  TemporaryFolder folder;
  const std::string launch = "torchrun --nnodes 2 --nproc-per-node 4 pretrain_gpt.py " + arguments;
  std::string line = launch;
  std::ranges::replace(line, '\n', ' ');
  WhatIf asked{{"megatron_args", folder.file("train.sh", "#!/bin/bash\n" + line + "\n")},
               {"cluster", "dgx-a100-80g"}};
  CHECK(resolved(asked).training.nodes() == 2);
  asked["gpus"] = "32";
  CHECK(resolved(asked).training.nodes() == 8);
  asked["gpus_per_node"] = "8";
  CHECK(resolved(asked).training.nodes() == 4);
}

TEST_CASE("run files: a vocabulary that no file states can be given") {
  TemporaryFolder folder;
  std::string text = arguments;
  text.replace(text.find("--vocab-size 50257"), 18, "--tokenizer-type HFTokenizer");
  WhatIf asked{{"megatron_args", folder.file("args.txt", text)},
               {"cluster", "dgx-a100-80g"},
               {"gpus", "16"}};
  CHECK_THAT(refusal(asked),
             Contains("--vocab-size: is missing") && Contains("--set model.vocab=N"));
  asked["model.vocab"] = "50257";
  WhatIf whole = asked;
  whole.erase("model.vocab");
  whole.insert_or_assign("megatron_args", folder.file("whole.txt", arguments));
  CHECK(parameters(*resolved(asked).training.model) == parameters(*resolved(whole).training.model));
}

TEST_CASE("run files: --cpu-optimizer gives no finding if the JSON offloads") {
  TemporaryFolder folder;
  std::string text = arguments + " --cpu-optimizer --deepspeed --deepspeed_config ds.json";
  text.erase(text.find("--use-distributed-optimizer"), 27);
  const auto noted = [&](const std::string& zero) {
    const WhatIf asked{
        {"megatron_args", folder.file("args.txt", text)},
        {"cluster", "dgx-a100-80g"},
        {"gpus", "16"},
        {"pp", "1"},
        {"config", folder.file("ds.json", "{\"zero_optimization\": {\"stage\": 1" + zero +
                                              "}, \"bf16\": {\"enabled\": true}}")}};
    const Scenario scenario = resolved(asked);
    return std::ranges::any_of(scenario.findings, [](const Finding& finding) {
      return finding.message.find("--cpu-optimizer:") != std::string::npos;
    });
  };
  CHECK(noted(""));
  CHECK_FALSE(noted(", \"offload_optimizer\": {\"device\": \"cpu\"}"));
}

TEST_CASE("run files: the treatment of each key of the inputs is listed") {
  TemporaryFolder folder;
  Catalog catalog;
  const std::string text = explain_inputs(
      {{"megatron_args", folder.file("args.txt", arguments + "--seed 1 --cp-comm-type a2a\n")},
       {"config", folder.file("ds.json", "{\"steps_per_print\": 5}")}},
      catalog);
  CHECK_THAT(text, Contains("13 keys applied, 1 costless, 1 named"));
  CHECK_THAT(text, Contains("--seed") && Contains("costless  initial values"));
  CHECK_THAT(text, Contains("steps_per_print") && Contains("--cp-comm-type"));
  CHECK_THROWS_WITH(explain_inputs({}, catalog),
                    Contains("'inputs' lists the keys of input files"));
}

// Megatron-DeepSpeed passes its own Adam to DeepSpeed if the JSON names none.
TEST_CASE("run files: a launch's JSON decides the optimizer if it names one") {
  TemporaryFolder folder;
  const auto optimizer_with = [&](const std::string& json) {
    const std::string script = "cat > ds.json <<EOF\n" + json +
                               "\nEOF\ndeepspeed --num_nodes 2 --num_gpus 8 pretrain_gpt.py "
                               "--num-layers 24 --hidden-size 1024 --num-attention-heads 16 "
                               "--seq-length 1024 --max-position-embeddings 1024 --vocab-size "
                               "50257 --micro-batch-size 4 --global-batch-size 64 --fp16 "
                               "--deepspeed --deepspeed_config ds.json --train-iters 300\n";
    return resolved(
               {{"megatron_args", folder.file("train.sh", script)}, {"cluster", "dgx-a100-80g"}})
        .training.optimizer();
  };
  const std::string head = R"({"train_batch_size": 64, "fp16": {"enabled": true})";
  CHECK(optimizer_with(head + "}") == OptimizerType::adam);
  CHECK(optimizer_with(head + R"(, "optimizer": {"type": "Lamb", "params": {}}})") ==
        OptimizerType::lamb);
}

TEST_CASE("run files: stage 3 of a file next to a 1-bit optimizer is refused at its line") {
  TemporaryFolder folder;
  const std::string json =
      "{\"train_batch_size\": 64,\n\"zero_optimization\": {\"stage\": 3},\n"
      "\"optimizer\": {\"type\": \"OneBitAdam\", \"params\": {}}}";
  CHECK_THROWS_WITH(resolved({{"config", folder.file("ds.json", json)},
                              {"model", "bert-large"},
                              {"cluster", "dgx-a100-80g"},
                              {"gpus", "16"},
                              {"micro_batch", "4"},
                              {"steps", "100"}}),
                    Contains("ds.json:2: zero_optimization.stage: 1bit-Adam is not compatible"));
}

TEST_CASE("run files: a topology of another program fills keys of the cluster") {
  TemporaryFolder folder;
  const std::string conf = folder.file("topology.conf",
                                       "SwitchName=s0 Nodes=n[0-5]\nSwitchName=s1 Nodes=n[6-11]\n"
                                       "SwitchName=s2 Switches=s[0-1]\n");
  WhatIf what_if{{"topology", conf}, {"cluster", "hgx-h100-ndr"}};
  const auto filled = [](const WhatIf& asked, std::vector<Finding>& findings) {
    Catalog catalog;
    return with_run_files(asked, catalog, findings);
  };
  std::vector<Finding> findings;
  WhatIf full = filled(what_if, findings);
  CHECK_FALSE(full.contains("topology"));
  CHECK(full["cluster.fabric.kind"] == "fat-tree");
  CHECK(full["cluster.fabric.nodes_per_leaf"] == "6");
  REQUIRE(findings.size() == 1);
  CHECK_THAT(findings[0].message, Contains("Slurm's topology.conf: fabric.kind = fat-tree") &&
                                      Contains("leaves open how much wider"));
  what_if["cluster.fabric.nodes_per_leaf"] = "4";
  findings.clear();
  CHECK(filled(what_if, findings)["cluster.fabric.nodes_per_leaf"] == "4");
  CHECK_THAT(findings[0].message, !Contains("nodes_per_leaf"));
  // `hosts` gives the job three hosts on each of two leaves, or all hosts on one leaf. The error
  // names a host that is on no leaf.
  what_if.erase("cluster.fabric.nodes_per_leaf");
  const auto of_hosts = [&](const char* hosts) {
    what_if["hosts"] = hosts;
    findings.clear();
    return filled(what_if, findings);
  };
  full = of_hosts("n[0-2,6-8]");
  CHECK(full["nodes"] == "6");
  CHECK(full["cluster.fabric.nodes_per_leaf"] == "3");
  CHECK(of_hosts("n[2-4]")["cluster.fabric.kind"] == "single-switch");
  CHECK_THAT(refusal(what_if = with({{"hosts", "n[2-4],m1"}}, what_if)),
             Contains("--hosts: 'm1' is on no leaf"));
  CHECK_THAT(refusal(with({{"hosts", "n[2-"}}, what_if)), Contains("is not a list of hosts"));
  what_if.erase("hosts");
  what_if["topology"] = folder.file("x.toml", "name = \"x\"\n");
  CHECK_THAT(refusal(what_if), Contains("x.toml: states no structure of a cluster"));
  // The refusal names the file, not the keys that it stands for.
  what_if["topology"] =
      folder.file("eth.xml", R"(<system version="1"><net speed="10000"/></system>)");
  CHECK_THAT(refusal(what_if), Contains("eth.xml: does not fit hgx-h100-ndr: nic.bandwidth") &&
                                   !Contains("--set cluster"));
}

TEST_CASE("run files: a torchtitan job is a what-if") {
  TemporaryFolder folder;
  const std::string job = R"([model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = 2
seq_len = 16384
steps = 10
[parallelism]
tensor_parallel_degree = 2
)";
  const WhatIf asked{
      {"torchtitan", folder.file("job.toml", job)}, {"cluster", "hgx-h100-ndr"}, {"gpus", "16"}};
  const Scenario scenario = resolved(asked);
  CHECK(scenario.training.model->name == "llama3-8b");
  CHECK(scenario.training.seq_len == 16384);  // longer than the preset's limit
  CHECK(scenario.training.parallelism->layout.dp == 8);
  CHECK(scenario.asked.at("tp") == "2");
  WhatIf both = asked;
  both["megatron_args"] = folder.file("args.txt", arguments);
  CHECK_THAT(refusal(both), Contains("--torchtitan: is another run"));
  WhatIf unknown = asked;
  unknown["torchtitan"] =
      folder.file("debug.toml", "[model]\nname = \"llama3\"\nflavor = \"debugmodel\"\n");
  CHECK_THAT(refusal(unknown), Contains("debug.toml:3: model.flavor: no preset is this model"));
}

TEST_CASE("run files: a config.json is a model, overrides included") {
  TemporaryFolder folder;
  const std::string path = folder.file("gpt2.json", R"({"model_type": "gpt2", "n_embd": 768,
    "n_head": 12, "n_layer": 12, "n_positions": 1024, "vocab_size": 50257})");
  const WhatIf asked = with({{"model", path}, {"seq_len", "512"}});
  CHECK(parameters(*resolved(asked).training.model) == 124'439'808);
  CHECK(resolved(with({{"model.layers", "6"}}, asked)).training.model->layers == 6);
  const auto assumed = [&](const WhatIf& of) {
    const Scenario scenario = resolved(of);
    return std::ranges::count(scenario.findings, "seq-len-assumed", &Finding::code);
  };
  CHECK(assumed(asked) == 0);
  CHECK(assumed(with({{"model", path}})) == 1);
  CHECK(assumed(with({{"model", "gpt2"}})) == 0);
  const auto of_type = [&](const std::string& type) {
    return refusal(
        with({{"model", folder.file("x.json", fmt::format(R"({{"model_type": "{}"}})", type))}}));
  };
  CHECK_THAT(of_type("gptt2"),
             Contains("x.json:1: model_type: unknown architecture 'gptt2', did you mean 'gpt2'?"));
  CHECK_THAT(of_type("gpt3"), Contains("unknown architecture 'gpt3' (allowed: "));
}

TEST_CASE("run files: a file that cannot be read is an error of its key") {
  CHECK_THAT(refusal(without({"model"}, {{"megatron_args", "/no/such/file"}})),
             Contains("/no/such/file"));
}

TEST_CASE("run files: batch and precision that differ between a launch and its JSON are reported") {
  const TemporaryFolder folder;
  const auto run = [&](const char* more) {
    const std::string launch =
        "#!/bin/bash\ncat <<EOT > ds.json\n{\"train_batch_size\": 64, "
        "\"train_micro_batch_size_per_gpu\": 2, \"fp16\": {\"enabled\": true}}\nEOT\n"
        "deepspeed --num_nodes 2 --num_gpus 8 pretrain_gpt.py --num-layers 4 --hidden-size 512 "
        "--num-attention-heads 8 --seq-length 128 --vocab-size 1000 --train-iters 10 --deepspeed "
        "--deepspeed_config ds.json ";
    return resolved(WhatIf{{"megatron_args", folder.file("train.sh", launch + more)},
                           {"cluster", "dgx-a100-80g"}});
  };
  const auto differs = [](const Scenario& scenario) {
    return std::ranges::count(scenario.findings, "launch-differs", &Finding::code);
  };
  CHECK(differs(run("--micro-batch-size 2 --global-batch-size 64 --fp16")) == 0);
  const Scenario other = run("--micro-batch-size 4 --global-batch-size 128 --bf16");
  CHECK(differs(other) == 3);
  CHECK(other.training.batch.micro == 4);
  CHECK(other.training.recipe.precision.weights == DataType::fp16);
}

TEST_CASE("run files: the JSON of a launch decides the ZeRO stage, and a difference is reported") {
  const TemporaryFolder folder;
  std::string launch = "deepspeed --num_nodes 2 --num_gpus 8 pretrain_gpt.py " + arguments;
  std::ranges::replace(launch, '\n', ' ');
  launch.replace(launch.find("--pipeline-model-parallel-size 4"), 32, "--sequence-parallel");
  const auto run = [&](const char* optimizer, const char* stage) {
    const std::string json = fmt::format(
        R"({{"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2, "bf16": {{"enabled": true}},
"optimizer": {{"type": "{}", "params": {{}}}}, "zero_optimization": {{"stage": {}}}}})",
        optimizer, stage);
    return WhatIf{{"megatron_args",
                   folder.file("train.sh", launch + " --deepspeed --deepspeed_config ds.json "
                                                    "--zero-stage 2\n")},
                  {"config", folder.file("ds.json", json)},
                  {"cluster", "dgx-a100-80g"}};
  };
  const auto differs = [](const std::vector<Finding>& findings) {
    return std::ranges::count(findings, "zero-stage-differs", &Finding::code);
  };
  CHECK(differs(resolved(run("Adam", "2")).findings) == 0);
  const Scenario third = resolved(run("Adam", "3"));
  CHECK(differs(third.findings) == 1);
  CHECK(third.training.parallelism->sharding == parallel::Sharding::weights);
  CHECK_THAT(refusal(run("OneBitLamb", "1")),
             Contains("ds.json:2: zero_optimization.stage: 1bit-Lamb is not compatible with ZeRO"));
}

TEST_CASE("run files: YAML of a launcher gives the DeepSpeed JSON that it contains or names") {
  const TemporaryFolder folder;
  const std::string accelerate =
      folder.file("accelerate.yaml",
                  "distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 3\n"
                  "  gradient_accumulation_steps: 4\nmixed_precision: bf16\nnum_processes: 16\n");
  WhatIf asked{{"config", accelerate},
               {"cluster", "dgx-a100-80g"},
               {"model", "llama2-7b"},
               {"optimizer", "adamw"},
               {"micro_batch", "1"}};
  const Scenario stage3 = resolved(asked);
  CHECK(stage3.training.gpus == 16);
  CHECK(stage3.training.batch.gas == 4);
  CHECK(stage3.training.recipe.zero.stage == 3);
  CHECK(stage3.config.bf16_enabled.value);
  asked["gpus"] = "8";
  asked["grad_accum"] = "2";
  CHECK(resolved(asked).training.gpus == 8);
  CHECK(resolved(asked).training.batch.gas == 2);

  const std::string factory =
      folder.file("sft.yaml",
                  "stage: sft\nfinetuning_type: lora\nquantization_bit: 4\nbf16: true\n"
                  "max_steps: 9\ndeepspeed: ds.json\n");
  WhatIf fine{{"config", factory}, {"cluster", "dgx-a100-80g"}, {"gpus", "8"}};
  CHECK_THAT(refusal(fine), Contains("names a model of a hub (allowed: --model"));
  fine["model"] = "llama2-7b";
  CHECK_THAT(refusal(fine), Contains("the file 'ds.json' is not found"));
  folder.file("ds.json", R"({"train_micro_batch_size_per_gpu": "auto", "bf16": {"enabled": "auto"},
                            "gradient_accumulation_steps": "auto",
                            "zero_optimization": {"stage": 2}})");
  const Scenario lora = resolved(fine);
  CHECK(lora.training.steps == 9);
  CHECK(lora.training.recipe.zero.stage == 2);
  CHECK(lora.training.model->adapters->frozen_bits == Approx(4.127).epsilon(1e-4));
}

TEST_CASE("run files: the ledger lists the keys of a config.json, in a checkpoint's folder too") {
  const TemporaryFolder folder;
  folder.file("config.json", R"({"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 2,
    "n_positions": 32, "vocab_size": 1000, "eos_token_id": 3, "reorder": true})");
  Catalog catalog;
  const auto ledgers = input_ledgers({{"model", folder.path().string()}}, catalog);
  REQUIRE(ledgers.size() == 1);
  const auto count = [&](Treatment treatment) {
    return std::ranges::count(ledgers.front().entries, treatment, &LedgerEntry::treatment);
  };
  CHECK(count(Treatment::applied) == 6);
  CHECK(count(Treatment::costless) == 1);
  CHECK(count(Treatment::named) == 1);
}

TEST_CASE("run files: the ledger lists the values of a file that flags replace") {
  const TemporaryFolder folder;
  const std::string json = folder.file(
      "d.json", "{\"train_micro_batch_size_per_gpu\": 4, \"zero_optimization\": {\"stage\": 1}}");
  const std::string yaml = folder.file(
      "a.yaml", "distributed_type: MULTI_GPU\nnum_processes: 8\nmixed_precision: bf16\n");
  Catalog catalog;
  const auto replaced = [&](WhatIf asked) {
    return input_ledgers(asked, catalog).front().replaced;
  };
  using Names = std::vector<std::string>;
  CHECK(replaced({{"config", json}, {"zero_stage", "2"}}) == Names{"zero_stage"});
  CHECK(replaced({{"config", json}, {"micro_batch", "1"}}) == Names{"micro_batch"});
  CHECK(replaced({{"config", yaml}, {"nodes", "2"}}) == Names{"gpus"});
  CHECK(replaced({{"config", yaml}}).empty());
}

TEST_CASE("run files: the ledger lists the keys of descriptions and of topologies") {
  const TemporaryFolder folder;
  const std::string cluster = folder.file("c.toml", "name = \"c\"\n[node]\ngpus = 8 # eight\n");
  const std::string topology = folder.file(
      "t.xml", "<system version=\"1\">\n<net dev=\"0\" speed=\"100000\" hue=\"3\"/></system>\n");
  Catalog catalog;
  const auto ledgers = input_ledgers({{"topology", topology}, {"cluster", cluster}}, catalog);
  REQUIRE(ledgers.size() == 2);
  const auto rows = [](const InputLedger& ledger) {
    std::vector<std::tuple<std::string, int, Treatment>> all;
    for (const LedgerEntry& entry : ledger.entries)
      all.emplace_back(entry.key, entry.line, entry.treatment);
    return all;
  };
  using enum Treatment;
  CHECK(rows(ledgers[0]) ==
        std::vector<std::tuple<std::string, int, Treatment>>{{"version", 1, costless},
                                                             {"dev", 2, costless},
                                                             {"speed", 2, applied},
                                                             {"hue", 2, named}});
  CHECK(rows(ledgers[1]) == std::vector<std::tuple<std::string, int, Treatment>>{
                                {"name", 1, costless}, {"node.gpus", 3, applied}});
}

}  // namespace
}  // namespace lambcast
