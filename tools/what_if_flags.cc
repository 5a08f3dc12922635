#include "tools/what_if_flags.h"

#include <algorithm>
#include <string>

#include "sim/base/error.h"

namespace lambcast {
namespace {

struct Help {
  const char* key;
  const char* text;
};

constexpr Help helps[] = {
    {"config", "DeepSpeed JSON, unmodified"},
    {"model", "model preset or TOML file"},
    {"cluster", "cluster preset or TOML file"},
    {"device", "device profile or TOML file (default: the cluster's)"},
    {"gpus", "number of GPUs"},
    {"nodes", "number of whole nodes, instead of --gpus"},
    {"gpus_per_node", "GPUs used of each node"},
    {"optimizer", "adam, adamw, lamb, onebit_adam, onebit_lamb, zero_one_adam, lars"},
    {"backend", "nccl, mpi, compressed"},
    {"kernels", "compression kernels: deepspeed (unfused) or fused"},
    {"micro_batch", "samples per GPU and micro step"},
    {"grad_accum", "micro steps per optimizer step"},
    {"global_batch", "samples per optimizer step"},
    {"seq_len", "tokens per sample"},
    {"steps", "optimizer steps of the run"},
    {"samples", "samples of the run, instead of --steps"},
    {"freeze_step", "step at which compression starts, or a share of the run (16.7%)"},
    {"precision", "fp16, bf16, fp32; products in fp8, mxfp8, nvfp4"},
    {"zero_stage", "0, 1, 2, 3 (weights sharded)"},
    {"overlap", "none, ddp (PyTorch's buckets during backward), zero (overlap_comm)"},
    {"network", "analytic or flow"},
    {"symmetry", "auto, or off to simulate every rank on its own"},
    {"tp", "tensor parallel size"},
    {"cp", "context parallel size"},
    {"pp", "pipeline parallel size"},
    {"ep", "expert parallel size: 1"},
    {"interleave", "chunks of layers per pipeline stage"},
    {"order", "axes from the innermost, as tp-cp-ep-dp-pp (default: the framework's)"},
    {"sequence_parallel", "true: activations between products divided over tensor parallelism too"},
    {"pipeline_schedule", "gpipe, 1f1b, interleaved, zb1p, zb2p, zbv"},
    {"recompute", "none, selective (attention core), alternate (every second product), full"},
    {"framework", "whose defaults: deepspeed, megatron, torchtitan, colossalai"},
    {"attention", "unfused, flash1, flash2, flash3 (default: the GPU's newest)"},
    {"tensor_overlap", "collectives of tensor parallelism behind products: none, backward, all"},
    {"fp32_gradients", "true: gradients added up and sent in fp32"},
    {"fusion",
     "eager, fused or compiled: which elementwise kernels are one (default: as the framework)"},
    {"split", "layers over stages: even, count_ends, spread, fill"},
    {"shard_ranks", "ranks that share states under ZeRO (default: all that hold the same weights)"},
    {"full_all_reduce",
     "true: ZeRO stage 1 sums all gradients on every rank (Apex's distributed LAMB)"},
};

std::string flag_of(std::string key) {
  std::replace(key.begin(), key.end(), '_', '-');
  return "--" + key;
}

}  // namespace

void add_what_if_flags(CLI::App& command, WhatIf& what_if) {
  for (const Help& help : helps) {
    const std::string key = help.key;
    command.add_option_function<std::string>(
        flag_of(key), [&what_if, key](const std::string& value) { what_if[key] = value; },
        help.text);
  }
  command.add_flag_function(
      "--cuda-aware", [&what_if](std::int64_t) { what_if["cuda_aware"] = "true"; },
      "the mpi backend passes device buffers to MPI");
  command
      .add_option_function<std::vector<std::string>>(
          "--set",
          [&what_if](const std::vector<std::string>& settings) {
            for (const std::string& setting : settings) {
              const auto equals = setting.find('=');
              if (equals == std::string::npos || equals == 0)
                fail_input({"", 0, "--set"}, "'" + setting + "' is not KEY=VALUE",
                           "cluster.KEY=VALUE, model.KEY=VALUE or run.KEY=VALUE");
              std::string key = setting.substr(0, equals);
              if (key.starts_with("run.")) key = key.substr(4);
              const std::string value = setting.substr(equals + 1);
              const auto [said, added] = what_if.emplace(key, value);
              if (!added && said->second != value)
                fail_input({"", 0, "--set"}, "'" + setting + "' contradicts " +
                                                 (key.find('.') == std::string::npos
                                                      ? flag_of(key) + " " + said->second
                                                      : "--set " + key + "=" + said->second));
            }
          },
          "change any key of the cluster, model or run: cluster.nic.bandwidth=10Gbit/s")
      ->allow_extra_args(false);
}

}  // namespace lambcast
