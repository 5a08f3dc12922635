#include "experiments/scenario/unread_keys.h"

#include <catch2/catch.hpp>

#include "experiments/scenario/scenario.h"
#include "experiments/scenario/scenario_case.h"
#include "models/training/memory/memory.h"
#include "models/training/run/forecast.h"

namespace lambcast {
namespace {

WhatIf plain() {
  return {{"model", "bert-large"}, {"cluster", "dgx-a100-80g"}, {"gpus", "8"},
          {"optimizer", "lamb"},   {"global_batch", "512"},     {"micro_batch", "16"}};
}

std::vector<std::string> unread(const WhatIf& changes) {
  std::vector<std::string> keys;
  for (const Finding& finding : resolved(with(changes, plain())).findings)
    if (finding.code == "flag-no-effect")
      keys.push_back(finding.message.substr(0, finding.message.find(':')));
  return keys;
}

using Keys = std::vector<std::string>;

TEST_CASE("unread keys: kernels=fused is read with every optimizer that has fused kernels") {
  for (const OptimizerModel* optimizer : optimizer_models()) {
    INFO(optimizer->name);
    WhatIf asked{{"optimizer", std::string(optimizer->name)}, {"kernels", "fused"}};
    if (optimizer->onebit) asked["freeze_step"] = "10%";
    CHECK(unread(asked) == (optimizer->in_kernels ? Keys{} : Keys{"--kernels"}));
    // The exchange uses the fused kernels in any case.
    if (!optimizer->in_kernels) CHECK(unread(with({{"exchange", "topk:1%"}}, asked)).empty());
  }
}

TEST_CASE("unread keys: clipping gradients takes BF16_Optimizer one more pass") {
  const auto step_us = [](const char* norm) {
    CollectiveCosts costs;
    const WhatIf asked = with({{"optimizer", "adamw"},
                               {"precision", "bf16"},
                               {"deepspeed_version", "0.15.4"},
                               {"gradient_clipping", norm}},
                              plain());
    return forecast(resolved(asked).training, costs).steps.front().step_time_us;
  };
  CHECK(step_us("1") > step_us("0"));
  CHECK(step_us("1") == step_us("2.5"));
}

TEST_CASE("unread keys: a flag that the run does not read is reported as without effect") {
  const WhatIf megatron{{"optimizer", "adamw"}, {"framework", "megatron"}, {"tp", "2"}};
  const auto on_megatron = [&](const WhatIf& more) {
    WhatIf all = megatron;
    all.insert(more.begin(), more.end());
    return all;
  };
  struct Case {
    WhatIf alone, read;
    std::string key;
  };
  for (const Case& c : std::vector<Case>{
           {{{"optimizer", "lamb"}, {"backend", "mpi"}},
            {{"optimizer", "onebit_lamb"}, {"backend", "mpi"}},
            "--backend"},
           {{{"optimizer", "adamw"}, {"gradient_clipping", "1"}},
            {{"optimizer", "adamw"},
             {"gradient_clipping", "1"},
             {"precision", "bf16"},
             {"deepspeed_version", "0.15.4"}},
            "--gradient-clipping"},
           {{{"optimizer", "adam"}, {"weight_decay", "0"}},
            {{"optimizer", "onebit_adam"}, {"freeze_step", "10%"}, {"weight_decay", "0"}},
            "--weight-decay"},
           {{{"optimizer", "lamb"}, {"cuda_aware", "true"}},
            {{"optimizer", "onebit_lamb"}, {"backend", "mpi"}, {"cuda_aware", "true"}},
            "--cuda-aware"},
           {{{"optimizer", "lamb"}, {"steps", "1000"}, {"freeze_step", "100"}},
            {{"optimizer", "onebit_lamb"}, {"steps", "1000"}, {"freeze_step", "100"}},
            "--freeze-step"},
           {{{"optimizer", "onebit_lamb"}, {"freeze_step", "10%"}, {"steps_done", "9"}},
            {{"optimizer", "onebit_lamb"}, {"freeze_step", "100"}, {"steps_done", "9"}},
            "--steps-done"},
           {on_megatron({{"kernels", "fused"}}),
            {{"optimizer", "adam"}, {"tp", "2"}, {"kernels", "fused"}},
            "--kernels"},
           {on_megatron({{"deepspeed_version", "0.15.4"}}),
            {{"optimizer", "adam"}, {"tp", "2"}, {"deepspeed_version", "0.15.4"}},
            "--deepspeed-version"},
           {on_megatron({{"versions", "torch=2.1"}}),
            {{"optimizer", "adam"}, {"tp", "2"}, {"versions", "torch=2.1"}},
            "--versions"},
           {{{"optimizer", "adam"}, {"gpus", "1"}, {"overlap", "ddp"}},
            {{"optimizer", "adam"}, {"gpus", "8"}, {"overlap", "ddp"}},
            "--overlap"},
           {on_megatron({{"recompute", "experts"}}), on_megatron({{"recompute", "full"}}),
            "--recompute"}}) {
    INFO(c.key);
    CHECK(unread(c.alone) == Keys{c.key});
    CHECK(unread(c.read).empty());
  }
  CHECK(unread({{"optimizer", "lamb"}, {"cuda_aware", "false"}, {"steps_done", "0"}}).empty());
}

TEST_CASE("unread keys: cluster keys that a run does not read are reported, and change nothing") {
  struct Case {
    WhatIf run;
    std::string key, value;
    bool unread;
  };
  const WhatIf one_node{{"optimizer", "lamb"}}, two_nodes{{"optimizer", "lamb"}, {"gpus", "16"}},
      over_mpi{{"optimizer", "onebit_lamb"},
               {"backend", "mpi"},
               {"gpus", "16"},
               {"steps", "1000"},
               {"freeze_step", "100"}};
  for (const Case& c :
       std::vector<Case>{{one_node, "cluster.nic.bandwidth", "1 Gbit/s", true},
                         {two_nodes, "cluster.nic.bandwidth", "1 Gbit/s", false},
                         {one_node, "cluster.nic.burst", "1 MB", true},
                         {one_node, "cluster.nic.nominal", "400 Gbit/s", true},
                         {one_node, "cluster.nic.count", "2", true},
                         {two_nodes, "cluster.nic.count", "2", false},
                         {one_node, "cluster.nic.link_layer", "ethernet", true},
                         {two_nodes, "cluster.nic.link_layer", "ethernet", true},
                         {one_node, "cluster.fabric", "{ kind = 'single-switch' }", true},
                         {two_nodes, "cluster.mpi.nic_efficiency", "0.2", true},
                         {over_mpi, "cluster.mpi.nic_efficiency", "0.2", false},
                         {over_mpi, "cluster.nccl.nic_efficiency", "0.2", false}}) {
    INFO(c.key << " " << c.unread);
    const WhatIf changed = with({{c.key, c.value}}, c.run);
    CHECK(unread(changed) == (c.unread ? Keys{"--set " + c.key} : Keys{}));
    const auto time = [](const WhatIf& what_if) {
      CollectiveCosts costs;
      return forecast(resolved(with(what_if, plain())).training, costs).run.time_s;
    };
    CHECK((time(changed) == time(c.run)) == c.unread);
  }
}

TEST_CASE("unread keys: model.flash_attention is unread if a kernel of attention is chosen") {
  for (const auto& [cluster, is_unread] :
       {std::pair{"hgx-h100-ndr", true}, {"dgx-a100-80g", false}}) {
    const WhatIf run{{"optimizer", "lamb"}, {"cluster", cluster}};
    const WhatIf flash = with({{"model.flash_attention", "true"}}, run);
    CHECK(unread(flash) == (is_unread ? Keys{"--set model.flash_attention"} : Keys{}));
    const auto peak = [](const WhatIf& what_if) {
      return forecast_memory(resolved(with(what_if, plain())).training).peak;
    };
    CHECK((peak(flash) == peak(run)) == is_unread);
  }
}

TEST_CASE("unread keys: a window is unread if the attention kernel does not use it") {
  const WhatIf gpt{
      {"model", "gpt2"}, {"optimizer", "adam"}, {"global_batch", "16"}, {"micro_batch", "2"}};
  const WhatIf fused = with({{"framework", "megatron"}, {"tp", "2"}}, gpt),
               unfused = with({{"attention", "unfused"}}, fused),
               on_v100 = with({{"cluster", "paper-eth40-v100"}}, gpt);
  for (const auto& [run, is_unread] : {std::pair{gpt, false}, std::pair{on_v100, true},
                                       std::pair{unfused, true}, std::pair{fused, false}}) {
    const WhatIf windowed = with({{"model.window", "128"}}, run);
    CHECK(unread(windowed) == (is_unread ? Keys{"--set model.window"} : Keys{}));
    const auto time = [](const WhatIf& what_if) {
      CollectiveCosts costs;
      return forecast(resolved(with(what_if, plain())).training, costs).run.time_s;
    };
    CHECK((time(windowed) == time(run)) == is_unread);
  }
}

// The length of a run without a given length depends on its freeze step (`choose_steps`).
TEST_CASE("unread keys: a freeze_step that sets the length of a baseline run is read") {
  const WhatIf frozen{{"freeze_step", "1000"}};
  CHECK(resolved(with(frozen, plain())).training.steps == 5993);
  CHECK(unread(frozen).empty());
  CHECK(unread({{"freeze_step", "20%"}}) == Keys{"--freeze-step"});
  // No run is assumed to be shorter than 1000 steps, so a small freeze step does not change it.
  CHECK(unread({{"freeze_step", "100"}}) == Keys{"--freeze-step"});
}

}  // namespace
}  // namespace lambcast
