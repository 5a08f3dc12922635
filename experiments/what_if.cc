#include "experiments/what_if.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/parallel/pipeline_schedule.h"
#include "models/training/framework.h"
#include "sim/base/check.h"

namespace lambcast {

std::span<const WhatIfKey> what_if_table() {
  static const std::vector<WhatIfKey> table{
      {"config", "DeepSpeed JSON, unmodified"},
      {"megatron_args", "argument list of Megatron-LM: model, layout, batch"},
      {"torchtitan", "job file of torchtitan: model, layout, batch"},
      {"model", "model preset, TOML file, or config.json of Hugging Face"},
      {"cluster", "cluster preset or TOML file"},
      {"device", "device profile or TOML file (default: the cluster's)"},
      {"gpus", "number of GPUs"},
      {"nodes", "number of whole nodes, instead of --gpus"},
      {"gpus_per_node", "GPUs used of each node"},
      {"optimizer",
       "",
       {"adam", "adamw", "lamb", "onebit_adam", "onebit_lamb", "zero_one_adam", "lars"}},
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
      {"network", "analytic or flow", {"analytic", "flow"}},
      {"symmetry", "auto, or off to simulate every rank on its own", {"auto", "off"}},
      {"tp", "tensor parallel size"},
      {"cp", "context parallel size"},
      {"pp", "pipeline parallel size"},
      {"ep", "expert parallel size: 1"},
      {"interleave", "chunks of layers per pipeline stage"},
      {"order", "axes from the innermost, as tp-cp-ep-dp-pp (default: the framework's)"},
      {"sequence_parallel",
       "true: activations between products divided over tensor parallelism too",
       {"false", "true"}},
      {"pipeline_schedule", "", parallel::pipeline_schedule_names()},
      {"recompute",
       "none, selective (attention core), alternate (every second product), full",
       {"none", "selective", "alternate", "full"}},
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
      {"split", "layers over stages: even, count_ends, spread, fill"},
      {"shard_ranks",
       "ranks that share states under ZeRO (default: all that hold the same weights)"},
      {"full_all_reduce",
       "true: ZeRO stage 1 sums all gradients on every rank (Apex's distributed LAMB)",
       {"false", "true"}},
  };
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
