#include "experiments/what_if.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/optimizer/optimizer_model.h"
#include "models/parallel/pipeline_schedule.h"
#include "models/training/expert_plan.h"
#include "models/training/framework.h"
#include "sim/base/check.h"

namespace lambcast {

namespace {

std::vector<WhatIfKey> training_keys() {
  return {
      {"config", "DeepSpeed JSON, unmodified"},
      {"megatron_args", "argument list of Megatron-LM: model, layout, batch"},
      {"torchtitan", "job file of torchtitan: model, layout, batch"},
      {"model", "model preset, TOML file, or config.json of Hugging Face"},
      {"cluster", "cluster preset or TOML file"},
      {"device", "device profile or TOML file (default: the cluster's)"},
      {"gpus", "number of GPUs"},
      {"nodes", "number of whole nodes, instead of --gpus"},
      {"gpus_per_node", "GPUs used of each node"},
      {"optimizer", "", optimizer_names()},
      {"backend", "", {"nccl", "mpi", "compressed"}},
      {"cuda_aware", "the mpi backend passes device buffers to MPI", {"false", "true"}, true},
      {"kernels", "compression kernels: deepspeed (unfused) or fused", {"deepspeed", "fused"}},
      {"micro_batch", "samples per GPU and micro step"},
      {"grad_accum", "micro steps per optimizer step"},
      {"global_batch", "samples per optimizer step"},
      {"seq_len", "tokens per sample"},
      {"steps", "optimizer steps of the run"},
      {"samples", "samples of the run, instead of --steps"},
      {"freeze_step", "step at which compression starts, or a share of the run (16.7%)"},
      {"steps_done", "steps before the checkpoint that the run goes on from"},
      {"versions", "deepspeed=0.15.4,torch=2.1,nccl=2.18: checked against what 1-bit runs need"},
      {"precision",
       "fp16, bf16, fp32; products in fp8, mxfp8, nvfp4",
       {"fp16", "bf16", "fp32", "fp8", "mxfp8", "nvfp4"}},
      {"zero_stage", "0, 1, 2, 3 (weights sharded)"},
      {"overlap",
       "none, ddp (PyTorch's buckets during backward), zero (overlap_comm)",
       {"none", "ddp", "zero"}},
      {"exchange",
       "how gradients are averaged: all_reduce, fp8, int8, int4, powersgd:RANK, topk:SHARE%, "
       "randomk:SHARE%, local:STEPS"},
      {"network", "analytic or flow", {"analytic", "flow"}},
      {"symmetry", "auto, or off to simulate every rank on its own", {"auto", "off"}},
  };
}

// Of the layout (experiments/layout_choice.h).
std::vector<WhatIfKey> layout_keys() {
  return {
      {"tp", "tensor parallel size"},
      {"cp", "context parallel size"},
      {"pp", "pipeline parallel size"},
      {"ep", "expert parallel size: ranks that divide the experts among them"},
      {"etp", "tensor parallel size inside an expert (default: tp)"},
      {"expert_dispatch",
       "how tokens reach experts: all_to_all, hierarchical, deduplicated (DeepEP, HybridEP)",
       dispatch_names()},
      {"capacity_factor",
       "places of an expert over the even share; 0: dropless (default: the framework's)"},
      {"imbalance", "rows of the fullest rank's experts over the mean, dropless (default: 1.2)"},
      {"expert_kernels", "each: a rank's experts one by one; grouped: all in one, captured",
       expert_kernels_names()},
      {"expert_overlap",
       "true: exchanges of tokens run beside the pass of another micro batch",
       {"false", "true"}},
      {"interleave", "chunks of layers per pipeline stage"},
      {"order", "axes from the innermost, as tp-cp-ep-dp-pp (default: the framework's)"},
      {"sequence_parallel",
       "true: activations between products divided over tensor parallelism too",
       {"false", "true"}},
      {"pipeline_schedule", "", parallel::pipeline_schedule_names()},
      {"recompute",
       "none, selective (attention core), alternate (every second product), full, experts",
       {"none", "selective", "alternate", "full", "experts"}},
      {"framework", "whose defaults: deepspeed, megatron, torchtitan, colossalai",
       framework_names()},
      {"attention",
       "unfused, flash1, flash2, flash3 (default: the GPU's newest)",
       {"unfused", "flash1", "flash2", "flash3"}},
      {"tensor_overlap", "collectives of tensor parallelism behind products: none, backward, all",
       tensor_overlap_names()},
      {"fp32_gradients", "true: gradients added up and sent in fp32", {"false", "true"}},
      {"fusion",
       "eager, fused or compiled: which elementwise kernels are one (default: as the framework)",
       {"eager", "fused", "compiled"}},
      {"eager_loss", "true: the loss apart from what is compiled", {"false", "true"}},
      {"split", "layers over stages: even, count_ends, spread, fill"},
      {"shard_ranks",
       "ranks that share states under ZeRO (default: all that hold the same weights)"},
      {"full_all_reduce",
       "true: ZeRO stage 1 sums all gradients on every rank (Apex's distributed LAMB)",
       {"false", "true"}},
      {"shard_handling_us",
       "host microseconds per rank and call over sharded weights (default: the framework's)"},
      {"secondary_ranks", "hpZ: ranks of a node that share a second copy, for the backward pass"},
      {"quantized_weights", "true: qwZ, weights gathered in int8", {"false", "true"}},
      {"quantized_gradients", "true: qgZ, gradients exchanged in int4", {"false", "true"}},
  };
}

}  // namespace

std::span<const WhatIfKey> what_if_table() {
  static const std::vector<WhatIfKey> table = [] {
    std::vector<WhatIfKey> all = training_keys();
    for (WhatIfKey& key : layout_keys()) all.push_back(std::move(key));
    return all;
  }();
  return table;
}

const std::vector<std::string>& what_if_keys() {
  static const std::vector<std::string> keys = [] {
    std::vector<std::string> names;
    for (const WhatIfKey& key : what_if_table()) names.emplace_back(key.name);
    return names;
  }();
  return keys;
}

const std::vector<std::string>& words_of(std::string_view key) {
  const auto table = what_if_table();
  const auto row = std::find_if(table.begin(), table.end(),
                                [&](const WhatIfKey& other) { return other.name == key; });
  LAMBCAST_CHECK(row != table.end() && !row->words.empty(), "{} has no list of values", key);
  return row->words;
}

std::string help_of(const WhatIfKey& key) {
  return key.help.empty() ? fmt::format("{}", fmt::join(key.words, ", ")) : std::string(key.help);
}

}  // namespace lambcast
