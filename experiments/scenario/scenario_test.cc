#include "experiments/scenario/scenario.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "experiments/scenario/scenario_case.h"
#include "models/training/run/step.h"
#include "sim/base/error.h"
#include "sim/base/temporary_folder.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::Equals;

std::string message_of(const Scenario& scenario, std::string_view code) {
  for (const Finding& finding : scenario.findings)
    if (finding.code == code) return finding.message;
  return {};
}

TEST_CASE("scenario: the plan has the values that are given") {
  const TrainingPlan training = resolved(complete()).training;
  CHECK(training.model->name == "bert-large");
  CHECK(training.cluster->name == "paper-eth40-v100");
  CHECK(training.device->name == "v100-16g");
  CHECK(training.gpus == 64);
  CHECK(training.gpus_per_node == 4);
  CHECK(training.nodes() == 16);
  CHECK(training.optimizer() == OptimizerType::onebit_lamb);
  CHECK(training.batch == Batch{65536, 16, 64});
  CHECK(training.seq_len == 128);
  CHECK(training.steps == 5993);
  CHECK(training.recipe.onebit.freeze_step == 1001);
  CHECK(training.recipe.precision.weights == DataType::fp16);
  CHECK(training.kernels == Kernels::deepspeed);
  CHECK(training.overlap == Overlap::none);
  CHECK(training.network == NetworkModel::analytic);
  CHECK_FALSE(training.expand);

  const TrainingPlan other = resolved(with({{"backend", "mpi"},
                                            {"cuda_aware", "true"},
                                            {"kernels", "fused"},
                                            {"overlap", "ddp"},
                                            {"network", "flow"},
                                            {"symmetry", "off"},
                                            {"precision", "fp32"},
                                            {"device", "v100-32g"},
                                            {"seq_len", "512"},
                                            {"cluster.nic.bandwidth", "10Gbit/s"},
                                            {"model.layers", "12"},
                                            {"tp", "1"},
                                            {"pp", "1"},
                                            {"ep", "1"}}))
                                 .training;
  CHECK(other.recipe.backend == Backend::mpi_device);
  CHECK(other.kernels == Kernels::fused);
  CHECK(other.overlap == Overlap::ddp);
  CHECK(other.network == NetworkModel::flow);
  CHECK(other.expand);
  CHECK(other.recipe.precision.weights == DataType::fp32);
  CHECK(other.device->name == "v100-32g");
  CHECK(other.seq_len == 512);
  CHECK(other.cluster->nic_bandwidth.value.value() == 1.25e9);
  CHECK(other.model->layers == 12);
}

TEST_CASE("scenario: missing inputs are named") {
  CHECK_THAT(refusal(without({"model"})), Equals("--model: is missing: a preset's name or a file"));
  CHECK_THAT(refusal(without({"cluster"})),
             Equals("--cluster: is missing: a preset's name or a file"));
  CHECK_THAT(refusal(without({"gpus"})),
             Equals("--gpus: is missing: give the number of GPUs, or of whole nodes with --nodes"));
  CHECK_THAT(refusal(without({"optimizer"})),
             Equals(fmt::format("--optimizer: is missing: give it here or in the DeepSpeed file "
                                "(allowed: {})",
                                fmt::join(optimizer_names(), ", "))));
  CHECK_THAT(refusal(without({"global_batch", "micro_batch"})),
             Equals("--global-batch: is missing: give it or --micro-batch, or two of them and "
                    "--grad-accum"));
  CHECK_THAT(refusal(without({"global_batch", "micro_batch"}, {{"grad_accum", "4"}})),
             Equals("--global-batch: is missing: give it or --micro-batch"));
  CHECK_THAT(refusal(with({{"model", ""}})), Contains("--model: is missing"));
}

TEST_CASE("scenario: unknown words get a suggestion") {
  struct Row {
    const char *key, *value, *expected;
  };
  const Row rows[] = {
      {"model", "bert-larg", "unknown model 'bert-larg', did you mean 'bert-large'?"},
      {"cluster", "paper-eth40-v10", "unknown cluster 'paper-eth40-v10', did you mean"},
      {"device", "v100-16", "unknown device profile 'v100-16', did you mean 'v100-16g'?"},
      {"optimizer", "onebit_lam", "unknown value 'onebit_lam', did you mean 'onebit_lamb'?"},
      {"optimizer", "madgrad", "unknown value 'madgrad' (allowed: adam, adamw, lamb"},
      {"backend", "hccl", "(allowed: nccl, mpi, compressed)"},
      {"cuda_aware", "yes", "unknown value 'yes' (allowed: false, true)"},
      {"kernels", "fusd", "unknown value 'fusd', did you mean 'fused'?"},
      {"precision", "fp61", "unknown value 'fp61', did you mean 'fp16'?"},
      {"overlap", "dpp", "unknown value 'dpp', did you mean 'ddp'?"},
      {"network", "flaw", "unknown value 'flaw', did you mean 'flow'?"},
      {"symmetry", "on", "unknown value 'on' (allowed: auto, off)"},
      {"gpu", "8", "gpu: unknown key 'gpu', did you mean 'gpus'?"},
      {"freezestep", "8", "unknown key 'freezestep', did you mean 'freeze_step'?"},
      {"clutser.nic.bandwidth", "1 Gbit/s", "did you mean 'cluster.nic.bandwidth'?"},
      {"nic.count", "1", "keys of descriptions begin with cluster., device. or model."},
      {"wan.up", "1 Gbit/s", "applies only to a cluster of several sites"},
      {"cluster.nic.bandwith", "1 Gbit/s", "unknown key 'bandwith', did you mean 'bandwidth'?"},
      {"model.layer", "12", "did you mean 'layers'?"},
  };
  for (const Row& row : rows) {
    INFO(row.key << " = " << row.value);
    CHECK_THAT(refusal(with({{row.key, row.value}})), Contains(row.expected));
  }
}

TEST_CASE("scenario: every number rejects texts, and values out of range") {
  struct Row {
    const char *key, *allowed;
    bool zero;  // whether zero is allowed
  };
  const Row rows[] = {
      {"gpus", "1 to 1048576", false},
      {"nodes", "1 to 1048576", false},
      {"gpus_per_node", "1 to 4", false},
      {"micro_batch", "1 to 1000000000000", false},
      {"grad_accum", "1 to 1000000000000", false},
      {"global_batch", "1 to 1000000000000", false},
      {"seq_len", "1 to 1048576", false},
      {"steps", "1 to 1000000000", false},
      {"samples", "1 to 9007199254740992", false},
      {"freeze_step", "0 to 1000000000", true},
      {"zero_stage", "0 to 3", true},
      {"tp", "1 to 65536", false},
      {"pp", "1 to 65536", false},
      {"ep", "1 to 65536", false},
  };
  for (const Row& row : rows) {
    for (const std::string value :
         {"0", "-1", "1.5", "1e3", "nan", "inf", "", " 8", "8 ", "+8", "0x10", "eight",
          "9223372036854775807", "99999999999999999999"}) {
      if (value == "0" && row.zero) continue;
      std::string flag = fmt::format("--{}", row.key);
      std::replace(flag.begin(), flag.end(), '_', '-');
      INFO(row.key << " = '" << value << "'");
      const std::string key = row.key;
      CHECK_THAT(refusal(without({key == "samples" ? "steps" : "samples"}, {{key, value}})),
                 Equals(fmt::format("{}: '{}' is not a whole number in range (allowed: {})", flag,
                                    value, row.allowed)));
    }
  }
}

TEST_CASE("scenario: quantities of the cluster and the model reject them too") {
  for (const char* value : {"0 Gbit/s", "-1 Gbit/s", "nan Gbit/s", "inf Gbit/s", "1e400 Gbit/s",
                            "10", "", "10 Gbyte/s"}) {
    INFO(value);
    CHECK_THAT(refusal(with({{"cluster.nic.bandwidth", value}})),
               Contains("--set cluster.nic.bandwidth: nic.bandwidth: "));
  }
  CHECK_THAT(refusal(with({{"cluster.usd_per_gpu_hour", "-5.0"}})),
             Contains("usd_per_gpu_hour: -5 is out of range (allowed: 0 to 10000)"));
  CHECK_THAT(refusal(with({{"cluster.usd_per_gpu_hour", "nan"}})),
             Contains("is not a finite number"));
  CHECK_THAT(refusal(with({{"cluster.nccl.nic_efficiency", "0.0"}})),
             Contains("0 is out of range (allowed: 0.0001 to 100)"));
  CHECK_THAT(refusal(with({{"cluster.node.gpus", "1025"}})),
             Contains("1025 is out of range (allowed: 1 to 1024)"));
  CHECK_THAT(refusal(with({{"cluster.fabric.kind", "torus"},
                           {"cluster.fabric.dimensions", "[4096, 4096, 4096]"}})),
             Contains("4096 is out of range (allowed: 1 or more each, 65536 places in all)"));
  CHECK_THAT(refusal(with({{"model.layers", "0"}})),
             Contains("model.layers: 0 is out of range (allowed: 1 to 10000)"));
  CHECK_THAT(refusal(with({{"model.hidden", "-1024"}})), Contains("is out of range"));
  CHECK_THAT(refusal(with({{"seq_len", "513"}})),
             Equals("--seq-len: 513 is out of range for bert-large (allowed: 1 to 512)"));
}

TEST_CASE("scenario: a freeze_step may be a share of the run") {
  struct Row {
    const char *share, *precision;
    std::int64_t expected;
  };
  // The run has 5993 steps. With fp16 the dry run takes one step, so k warm-up updates need
  // freeze_step k + 1.
  const Row rows[] = {{"0%", "fp16", 1},      {"16.7%", "fp16", 1002}, {"50%", "fp16", 2998},
                      {"100%", "fp16", 5994}, {"0%", "fp32", 0},       {"16.7%", "fp32", 1001},
                      {"100%", "fp32", 5993}, {"0.01%", "fp16", 2}};
  for (const Row& row : rows) {
    const auto training =
        resolved(with({{"freeze_step", row.share}, {"precision", row.precision}})).training;
    CHECK(training.recipe.onebit.freeze_step == row.expected);
  }
  for (const std::string value :
       {"101%", "-1%", "nan%", "inf%", "%", "1e3%", "16.7 %", "a%", "1%%"})
    CHECK_THAT(refusal(with({{"freeze_step", value}})),
               Equals(fmt::format("--freeze-step: '{}' is not a percentage (allowed: 0% to 100%)",
                                  value)));
  // Plain optimizers ignore freeze_step, so that a sweep may share the key; 0/1 Adam renames it.
  CHECK(refusal(with({{"optimizer", "lamb"}, {"freeze_step", "10%"}})).empty());
  CHECK(resolved(with({{"optimizer", "zero_one_adam"}, {"freeze_step", "1000"}}))
            .training.recipe.onebit.var_freeze_step == 1000);
}

TEST_CASE("scenario: GPUs and nodes agree, or are refused") {
  const auto placed = [](const WhatIf& changes) {
    const TrainingPlan training = resolved(without({"gpus", "global_batch"}, changes)).training;
    return std::vector<int>{training.gpus, training.gpus_per_node, training.nodes()};
  };
  CHECK(placed({{"nodes", "16"}}) == std::vector<int>{64, 4, 16});
  CHECK(placed({{"nodes", "3"}, {"gpus_per_node", "2"}}) == std::vector<int>{6, 2, 3});
  CHECK(refusal(without({"global_batch"}, {{"gpus", "5"}})).empty());  // nodes of 4 GPUs and of 1
  CHECK(refusal(without({"global_batch"}, {{"gpus", "8"}, {"nodes", "2"}})).empty());
  CHECK_THAT(refusal(with({{"nodes", "3"}})),
             Equals("--nodes: 64 GPUs with 4 a node are 16 nodes, not 3"));
  CHECK_THAT(refusal(without({"gpus"}, {{"nodes", "1048576"}})),
             Equals("--nodes: 1048576 nodes are 4194304 GPUs (allowed: up to 1048576 GPUs)"));
  CHECK(placed({{"nodes", "262144"}}) == std::vector<int>{1048576, 4, 262144});
  CHECK_THAT(
      refusal(with({{"cluster.max_nodes", "8"}})),
      Equals("--gpus: paper-eth40-v100 needs 16 nodes for 64 GPUs (allowed: up to 8 nodes)"));
}

TEST_CASE("scenario: GaLore is refused with ZeRO") {
  const WhatIf galore = without({"freeze_step"}, {{"optimizer", "galore_adamw8bit"}});
  CHECK(refusal(galore).empty());
  CHECK_THAT(refusal(with({{"zero_stage", "1"}}, galore)),
             Equals("--zero-stage: GaLore does not run with ZeRO: it projects whole matrices "
                    "(allowed: 0)"));
}

TEST_CASE("scenario: GaLore's keys set its projection, and are reported for other optimizers") {
  const WhatIf keys{
      {"galore_rank", "64"}, {"galore_update_gap", "500"}, {"galore_min_8bit_size", "0"}};
  WhatIf asked = without({"freeze_step"}, {{"optimizer", "galore_adamw8bit"}});
  CHECK(resolved(asked).training.recipe.projection.rank == 256);
  for (const auto& [key, value] : keys) asked[key] = value;
  const Scenario galore = resolved(asked);
  CHECK(galore.training.recipe.projection.rank == 64);
  CHECK(galore.training.recipe.projection.update_proj_gap == 500);
  CHECK(galore.training.recipe.projection.min_8bit_size == 0);
  const auto said = [](const Scenario& scenario) {
    return std::ranges::count(scenario.findings, "galore-alone", &Finding::code);
  };
  CHECK(said(galore) == 0);
  asked["optimizer"] = "adam";
  CHECK(said(resolved(asked)) == 3);
  CHECK_THAT(refusal(with({{"galore_rank", "0"}})),
             Equals("--galore-rank: '0' is not a whole number in range (allowed: 1 to "
                    "1099511627776)"));
}

TEST_CASE("scenario: DeepSpeed's own rules are reported in its words") {
  CHECK_THAT(refusal(with({{"zero_stage", "1"}})),
             Contains("1bit-Lamb is not compatible with ZeRO"));
  CHECK_THAT(refusal(with({{"zero_stage", "2"}, {"optimizer", "onebit_adam"}})),
             Contains("1bit-Adam is not compatible with ZeRO"));
  CHECK_THAT(refusal(with({{"zero_stage", "1"}, {"optimizer", "zero_one_adam"}})),
             Contains("0/1 Adam is not compatible with ZeRO"));
  const auto in_bf16 = [](const char* optimizer, const char* release) {
    return refusal(
        with({{"precision", "bf16"}, {"optimizer", optimizer}, {"deepspeed_version", release}}));
  };
  CHECK_THAT(in_bf16("onebit_lamb", "0.17.0"),
             Contains("DeepSpeed onebitlamb optimizer requires dynamic loss scaling"));
  CHECK_THAT(in_bf16("lamb", "0.16.5"),
             Contains("DeepSpeed lamb optimizer requires dynamic loss scaling"));
  CHECK(in_bf16("lamb", "0.17.1").empty());
  CHECK(refusal(with({{"precision", "bf16"}, {"optimizer", "adam"}})).empty());
}

TEST_CASE("scenario: flags override the DeepSpeed file") {
  const TemporaryFolder folder;
  const std::string file = folder.file("ds.json", R"({
    "train_batch_size": 65536, "train_micro_batch_size_per_gpu": 64,
    "optimizer": {"type": "OneBitLamb", "params": {"lr": 11e-3, "freeze_step": 1000,
      "comm_backend_name": "mpi", "cuda_aware": true}},
    "fp16": {"enabled": true}, "zero_optimization": {"stage": 0}})");
  const WhatIf bare{
      {"model", "bert-large"}, {"cluster", "paper-eth40-v100"}, {"gpus", "64"}, {"config", file}};
  const auto overridden = [&](const WhatIf& flags) { return resolved(with(flags, bare)).training; };
  const TrainingPlan as_written = overridden({});
  CHECK(as_written.optimizer() == OptimizerType::onebit_lamb);
  CHECK(as_written.batch == Batch{65536, 64, 16});
  CHECK(as_written.recipe.onebit.freeze_step == 1000);
  CHECK(as_written.recipe.backend == Backend::mpi_device);
  CHECK(as_written.steps == 5993);  // length published for its freeze_step; a finding states it

  CHECK(overridden({{"optimizer", "onebit_adam"}}).optimizer() == OptimizerType::onebit_adam);
  CHECK(overridden({{"backend", "nccl"}}).recipe.backend == Backend::nccl);
  CHECK(overridden({{"cuda_aware", "false"}}).recipe.backend == Backend::mpi_host);
  CHECK(overridden({{"freeze_step", "23000"}}).recipe.onebit.freeze_step == 23000);
  CHECK(overridden({{"precision", "fp32"}}).recipe.precision.weights == DataType::fp32);
  // A batch flag keeps as much of the file as the equation allows; the global batch has priority.
  CHECK(overridden({{"micro_batch", "16"}}).batch == Batch{65536, 16, 64});
  CHECK(overridden({{"grad_accum", "8"}}).batch == Batch{65536, 128, 8});
  CHECK(overridden({{"global_batch", "8192"}}).batch == Batch{8192, 64, 2});
  CHECK(overridden({{"micro_batch", "8"}, {"grad_accum", "2"}}).batch == Batch{1024, 8, 2});
  // Errors in the file are reported at their line.
  const std::string bad = folder.file("bad.json", "{\n \"train_batch_size\": \"many\"\n}");
  CHECK_THAT(refusal(with({{"config", bad}}, bare)),
             Contains(fmt::format("{}:2: train_batch_size", bad)));
  CHECK_THAT(refusal(with({{"config", (folder.path() / "absent.json").string()}}, bare)),
             Contains("absent.json: cannot be read"));
  CHECK_THAT(refusal(with({{"config", folder.path().string()}}, bare)),
             Contains(": cannot be read"));
}

TEST_CASE("scenario: a file with ZeRO and a 1-bit optimizer runs once a flag turns one off") {
  const TemporaryFolder folder;
  const std::string file = folder.file("ds.json", R"({"train_batch_size": 64,
    "optimizer": {"type": "OneBitAdam", "params": {"freeze_step": 10}},
    "fp16": {"enabled": true}, "zero_optimization": {"stage": 1}})");
  const WhatIf base{
      {"model", "bert-large"}, {"cluster", "paper-eth40-v100"}, {"gpus", "8"}, {"config", file}};
  CHECK_THAT(refusal(base),
             Contains(fmt::format(
                 "{}:3: zero_optimization.stage: 1bit-Adam is not compatible with ZeRO", file)));
  CHECK(refusal(with({{"zero_stage", "0"}}, base)).empty());
  CHECK(refusal(with({{"optimizer", "adam"}}, base)).empty());
}

TEST_CASE("scenario: each stage of ZeRO overlaps in its own way, and refuses the other's") {
  const auto at = [](const char* stage, const char* overlap) {
    return with({{"optimizer", "adam"}, {"zero_stage", stage}, {"overlap", overlap}});
  };
  CHECK(resolved(at("0", "ddp")).training.overlap == Overlap::ddp);
  CHECK_THAT(refusal(at("0", "zero")),
             Equals("--overlap: zero is ZeRO's overlap_comm, and ZeRO is off at stage 0 (allowed: "
                    "none, ddp)"));
  for (const char* stage : {"1", "2"}) {
    CHECK_THAT(refusal(at(stage, "ddp")), Equals("--overlap: ddp is PyTorch's sum of gradients; "
                                                 "ZeRO has its own (allowed: none, zero)"));
    CHECK(resolved(at(stage, "zero")).training.recipe.zero.overlap == true);
    CHECK(resolved(at(stage, "none")).training.recipe.zero.overlap == false);
  }
  // A flag overrides the file.
  const TemporaryFolder folder;
  const std::string file = folder.file("ds.json", R"({"train_micro_batch_size_per_gpu": 16,
    "optimizer": {"type": "Adam"}, "fp16": {"enabled": true},
    "zero_optimization": {"stage": 2, "overlap_comm": true}})");
  const WhatIf base{
      {"model", "bert-large"}, {"cluster", "paper-eth40-v100"}, {"gpus", "8"}, {"config", file}};
  CHECK(resolved(base).training.recipe.zero.overlap == true);
  CHECK(resolved(with({{"overlap", "none"}}, base)).training.recipe.zero.overlap == false);
}

TEST_CASE("scenario: a run of no given length has the length published for its freeze_step") {
  struct Row {
    const char *optimizer, *freeze_step;
    std::int64_t steps;
  };
  const Row rows[] = {
      {"onebit_lamb", "1000", 5993},     // 1000 of 5993
      {"onebit_adam", "23000", 153334},  // 15 %
      {"zero_one_adam", "12500", 150000},
      {"lamb", "1000", 5993},          // the same length as for 1-bit LAMB
      {"onebit_lamb", "16.7%", 1000},  // a share of an unknown length
      {"onebit_lamb", "2", 1000},      // the minimum
      {"onebit_lamb", "1000000000", 1'000'000'000},
  };
  for (const Row& row : rows) {
    INFO(row.optimizer << " " << row.freeze_step);
    const Scenario assumed = resolved(
        without({"steps"}, {{"optimizer", row.optimizer}, {"freeze_step", row.freeze_step}}));
    CHECK(assumed.training.steps == row.steps);
    CHECK_THAT(message_of(assumed, "steps-assumed"),
               Contains(fmt::format("assumed: {} optimizer steps", row.steps)));
  }
  CHECK(message_of(resolved(complete()), "steps-assumed").empty());
  // Without steps and freeze_step the length is the default.
  CHECK(resolved(without({"steps", "freeze_step"})).training.steps == 1000);
}

TEST_CASE("scenario: the freeze_step of a file gives the run its length") {
  const TemporaryFolder folder;
  const std::string path = folder.file("ds.json", R"({ "train_batch_size": 65536,
    "train_micro_batch_size_per_gpu": 64, "fp16": { "enabled": true },
    "optimizer": { "type": "OneBitLamb", "params": { "freeze_step": 1000 } } })");
  const WhatIf asked{
      {"model", "bert-large"}, {"cluster", "commodity-10gbe"}, {"nodes", "16"}, {"config", path}};
  CHECK(resolved(asked).training.steps == 5993);
  CHECK_THAT(message_of(resolved(asked), "steps-assumed"),
             Contains("(freeze_step 1000 is 16.7 % of them, as in the published recipes)"));
}

TEST_CASE("scenario: \"auto\" precision is settled, by --precision or with a finding") {
  const TemporaryFolder folder;
  const std::string path = folder.file("ds.json", R"({ "train_micro_batch_size_per_gpu": 8,
    "optimizer": { "type": "AdamW" }, "bf16": { "enabled": "auto" } })");
  const WhatIf asked{
      {"model", "bert-large"}, {"cluster", "dgx-a100-80g"}, {"gpus", "8"}, {"config", path}};
  CHECK(resolved(asked).training.recipe.precision.weights == DataType::bf16);
  CHECK_THAT(message_of(resolved(asked), "auto-precision"), Contains("computed in bf16"));
  for (const char* precision : {"fp16", "bf16", "fp32"}) {
    const Scenario said = resolved(with({{"precision", precision}}, asked));
    CHECK(name_of(said.training.recipe.precision.weights) == precision);
    CHECK(message_of(said, "auto-precision").empty());
  }
}

TEST_CASE("scenario: experts on every GPU are reported") {
  const WhatIf asked{{"model", "mixtral-8x7b"},
                     {"cluster", "hgx-h100-ndr"},
                     {"gpus", "8"},
                     {"optimizer", "adamw"},
                     {"micro_batch", "1"}};
  CHECK_THAT(message_of(resolved(asked), "experts-replicated"),
             Contains("all 8 experts of mixtral-8x7b"));
  CHECK(message_of(resolved(with({{"model", "llama2-7b"}}, asked)), "experts-replicated").empty());
}

TEST_CASE("scenario: only one input may be stdin") {
  CHECK_THAT(refusal(with({{"config", "-"}, {"cluster", "-"}})),
             Equals("--cluster: - is stdin, which --config reads already"));
}

TEST_CASE("scenario: a stack of NVIDIA's code has its own kernels for optimizers without codec") {
  CHECK(resolved(without({"global_batch"}, {{"cluster", "dgx1-v100"}, {"optimizer", "lamb"}}))
            .training.kernels == Kernels::nvidia);
  CHECK(resolved(without({"global_batch"}, {{"cluster", "dgx1-v100"}})).training.kernels ==
        Kernels::deepspeed);
}

TEST_CASE("scenario: runs too large to simulate are refused before they begin") {
  // --symmetry off simulates every micro batch of every block.
  CollectiveCosts costs;
  const Scenario scenario = resolved(
      without({"global_batch"}, {{"symmetry", "off"}, {"grad_accum", "1000000"}, {"gpus", "4"}}));
  CHECK_THROWS_WITH(run_step(scenario.training, {StepKind::warmup, 128, 1}, costs),
                    Contains("--symmetry: off: 1000000 micro batches of 24 blocks are too many"));
  // With 4095 ranks one node has one rank less. Ranks are folded by kind; otherwise every pair of
  // ranks would be stored.
  const auto uneven = [&](const char* symmetry) {
    const Scenario asked =
        resolved(without({"global_batch"}, {{"gpus", "4095"}, {"symmetry", symmetry}}));
    return run_step(asked.training, {StepKind::compression, 128, 1}, costs).metrics.step_time;
  };
  CHECK(uneven("auto") > Duration());
  CHECK_THROWS_WITH(uneven("off"), Contains("all_to_all over 4095 ranks: too many ranks"));
}

}  // namespace
}  // namespace lambcast
