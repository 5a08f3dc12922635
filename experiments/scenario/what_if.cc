#include "experiments/scenario/what_if.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/scenario/plugin_choice.h"
#include "experiments/scenario/precision_word.h"
#include "models/optimizer/optimizer_model.h"
#include "models/shape/adapters.h"
#include "models/training/plan/training_plan.h"
#include "sim/base/check.h"
#include "sim/collectives/symmetry.h"

namespace lambcast {

namespace {

using enum ValueType;

std::vector<std::string> recompute_words() {
  std::vector<std::string> words = parallel::recompute_names();
  words.emplace_back(recompute_experts);
  return words;
}

std::vector<WhatIfKey> description_keys() {
  return {
      {"config", "DeepSpeed JSON, or YAML of Accelerate, GPT-NeoX, LLaMA-Factory or axolotl"},
      {"megatron_args", "argument list of Megatron-LM: model, layout, batch"},
      {"set_var", "variable of the script of --megatron-args, NAME=VALUE (repeatable)"},
      {"torchtitan", "job file of torchtitan: model, layout, batch"},
      {"model", "model preset, TOML file, or config.json of Hugging Face"},
      {"cluster", "cluster preset or TOML file"},
      {"topology",
       "structure of the cluster: NCCL's topology XML or log of NCCL_DEBUG=INFO, nvidia-smi topo "
       "-m, "
       "or Slurm's topology.conf or topology.yaml"},
      {"hosts",
       "hosts of the job as SLURM_JOB_NODELIST lists them, n[01-04]: its nodes, and with Slurm's "
       "--topology their leaves"},
      {"device", "device profile or TOML file (default: the cluster's)"},
      {"gpus", "number of GPUs", whole},
      {"nodes", "number of whole nodes, instead of --gpus", whole, {1, 512}},
      {"dp", "data parallel size, instead of --gpus: with both it is checked", whole},
      {"gpus_per_node", "GPUs used of each node (default: all)", whole, {1, 64}},
  };
}

std::vector<WhatIfKey> keys_of_one_optimizer() {
  return {
      {"var_update_scaler",
       "0/1 Adam: updates of its variance before their interval doubles "
       "(default: the file's, or 16)",
       whole,
       {1, 1e6}},
      {"local_step_scaler",
       "0/1 Adam, variance frozen: steps before the interval of its exchanges doubles "
       "(default: the file's, or 32678)",
       whole,
       {1, 1e9}},
      {"local_step_clipper",
       "0/1 Adam: steps from one of its exchanges to the next, at most (default: "
       "the file's, or 16)",
       whole},
      {"galore_rank", "directions that GaLore projects a matrix on (default: 256)", whole},
      {"galore_update_gap",
       "steps from one of its decompositions to the next (default: 200)",
       whole,
       {1, 1e6}},
      {"galore_min_8bit_size",
       "elements from which it keeps a state in 8 bits (default: 4096); is_paged is not modelled",
       whole,
       {1, 1e9}},
      {"precondition_frequency",
       "SOAP, Shampoo: steps from one decomposition to the next (default: 10 and 100)",
       whole,
       {1, 1e4}},
  };
}

std::vector<WhatIfKey> optimizer_keys() {
  return {
      {"optimizer", "what updates the weights", optimizer_names()},
      {"backend", "carries compressed exchanges: nccl (the default), mpi, compressed",
       backend_words()},
      {"cuda_aware",
       "true: the mpi backend passes device buffers to MPI (default: the file's, or false)",
       {"false", "true"}},
      {"kernels",
       "compression kernels: deepspeed (unfused, the default) or fused",
       {std::string(name_of(Kernels::deepspeed)), std::string(name_of(Kernels::fused))}},
      {"exchange",
       "how gradients are averaged: all_reduce, fp16, bf16 (of fp32 gradients), onebit, fp8, "
       "fp8:e5m2, int8, int4, fp8+ef, int8+ef and int4+ef (with error feedback), qgz, qgz:int8, "
       "loco, loco:int8 (qgz+ef), sdp4bit (weights in 4 bits too), powersgd:RANK (of matrices "
       "that factors at least halve), powersgd:RANK:ITERATIONS (without a warm start), "
       "topk:SHARE%, randomk:SHARE%, chunktopk:KEPT and dctsign:KEPT (of each 4096), "
       "lossless:SHARE%, local:STEPS (DiLoCo), localsgd:STEPS, and with :SITE between sites of so "
       "many ranks, neighbours:ring, neighbours:exponential (default: all_reduce); behind it / "
       "flat, two-level (node leaders), sharded (each GPU a share of its node's sum), relay or "
       "store (through a hub), / after the backward pass or overlapped (default: as its library "
       "runs it); or / every STEPS, for the change of weights, with / ranks, nodes or "
       "sites:RANKS, / fragments P and / overlap STEPS; / start STEPS: all_reduce before them"},
      {"precision",
       "of weights: fp16, bf16, fp32; of products: fp8, mxfp8, nvfp4 (default: fp16; bf16 for "
       "Llama-like models and mixtures of experts from the A100 on, unless the optimizer is 1-bit)",
       precision_words()},
      {"gradient_clipping",
       "norm that gradients are clipped to (default: the file's, or 0: none)",
       number,
       {0.1, 10}},
      {"weight_decay",
       "decay of weights, a share of the learning rate, 0 for none (default: the file's, or 0.01)",
       number,
       {0.001, 0.1}},
      {"zero_stage",
       "stage of ZeRO: 0 shards nothing (the default), 1 states, 2 gradients, 3 weights",
       whole,
       {1, 3}},
      {"overlap",
       "of gradients with the backward pass: none (the default), ddp (PyTorch's buckets), zero "
       "(overlap_comm)",
       overlap_names()},
      {"deepspeed_version",
       "release whose ways are forecast, such as 0.15.4 (default: the newest)"},
      {"versions",
       "torch=2.1,nccl=2.18,deepspeed=0.15.4: checked against what runs need; the last is "
       "--deepspeed-version"},
  };
}

std::vector<WhatIfKey> run_keys() {
  return {
      {"micro_batch", "samples per GPU and micro step", whole},
      {"grad_accum", "micro steps per optimizer step", whole},
      {"global_batch", "samples per optimizer step", whole, {1, 1 << 20}},
      {"rampup_batch_size",
       "START:INCREMENT:SAMPLES, batches of early steps on the way to the full one, as Megatron's"},
      {"seq_len", "tokens per sample (default: the model's)", whole, {1, 1 << 20}},
      {"steps",
       "optimizer steps of the run (default: 1000; with freeze_step as a number, as many as it is "
       "published for)",
       whole,
       {1, 1e9}},
      {"samples", "samples of the run, instead of --steps", whole, {1, 1e12}},
      {"tokens", "tokens of the run, instead of --steps: 300e9", number, {1e6, 1e15}},
      {"freeze_step",
       "step at which compression starts, or a share of the run (16.7%) (default: the file's, or "
       "DeepSpeed's 100000; advise and compare take 20%)",
       share_or_whole},
      {"steps_done", "steps before the checkpoint that the run goes on from", whole},
  };
}

std::vector<WhatIfKey> simulation_keys() {
  return {
      {"network",
       "how messages meet: analytic (formulas, the default) or flow (links shared among all)",
       network_model_names()},
      {"symmetry", "auto (ranks alike once, the default), or off to simulate every rank on its own",
       symmetry_names()},
  };
}

// Keys of the layout (experiments/scenario/layout_choice.h).
std::vector<WhatIfKey> layout_keys() {
  return {
      {"tp", "tensor parallel size (default: 1)", whole},
      {"cp", "context parallel size (default: 1)", whole},
      {"pp", "pipeline parallel size (default: 1)", whole},
      {"ep", "expert parallel size: ranks that divide the experts among them (default: 1)", whole},
      {"etp", "tensor parallel size inside an expert (default: tp)", whole},
      {"expert_dispatch",
       "how tokens reach experts: all_to_all (the default), hierarchical, deduplicated (DeepEP, "
       "HybridEP)",
       dispatch_names()},
      {"capacity_factor",
       "places of an expert over the even share; 0: dropless (default: the framework's)",
       number,
       {0.1, 100}},
      {"imbalance",
       "rows of the fullest rank's experts over the mean, dropless (default: 1.2; with ep 1: 1)",
       number,
       {1, 100}},
      {"expert_kernels",
       "each: the experts of a rank one by one; grouped: all in one, captured (default: each; "
       "grouped for torchtitan)",
       expert_kernels_names()},
      {"expert_routing",
       "sparse: tokens are copied to their places; one_hot: multiplied (DeepSpeed's default)",
       routing_names()},
      {"expert_overlap",
       "true: tokens are exchanged during the pass of another micro batch (default: false)",
       {"false", "true"}},
      {"interleave", "chunks of layers per pipeline stage (default: 1)", whole},
      {"order", "axes from the innermost, as tp-cp-ep-dp-pp (default: the framework's)"},
      {"sequence_parallel",
       "true: activations between products divided over tensor parallelism too (default: false)",
       {"false", "true"}},
      {"pipeline_schedule",
       "order of passes in a pipeline: gpipe, 1f1b, interleaved, zb1p, zb2p, zbv (default: 1f1b, "
       "or interleaved with --interleave)",
       parallel::pipeline_schedule_names()},
      {"recompute",
       "activations computed again: none (the default), selective (attention core), alternate "
       "(every second product), full, "
       "experts",
       recompute_words()},
      {"framework",
       "program that runs: deepspeed (the default), megatron, torchtitan, colossalai, "
       "pytorch, nvidia, nemo, paddle, tensorflow, jax, bagua; other: any further one",
       framework_names()},
      {"plugin",
       "plugin of Colossal-AI: hybrid_parallel, low_level_zero, torch_ddp, gemini, moe_hybrid "
       "(default: none)",
       plugin_names()},
  };
}

// Keys for the computation and overlap of a layout.
std::vector<WhatIfKey> pass_keys() {
  return {
      {"lora_rank",
       "fine-tunes low-rank adapters of this rank on frozen weights (LoRA)",
       whole,
       {1, 1024}},
      {"lora_targets",
       "what has adapters: attention (its products, the default), all (the feed-forward's too)",
       adapter_target_names()},
      {"attention",
       "its kernels: unfused, flash1, flash2, cudnn, flash3 (of Hopper), flash4 (of Blackwell) "
       "(default: the newest that frameworks ship for the GPU)",
       attention_kernel_names()},
      {"fp8_attention",
       "true: attention multiplies in fp8 too (default: false)",
       {"false", "true"}},
      {"fp8_activation_input",
       "true: the input of a gated activation is kept in fp8 for its backward pass (default: "
       "false)",
       {"false", "true"}},
      {"context_exchange",
       "of context parallelism: a ring of keys and values, or heads for tokens (default: the "
       "framework's)",
       context_exchange_names()},
      {"tensor_overlap",
       "collectives of tensor parallelism that run during products: none, backward, all, chunks "
       "(default: the framework's)",
       tensor_overlap_names()},
      {"send_overlap",
       "true: stages of an interleaved or zero-bubble pipeline send beside their next pass "
       "(default: as the framework)",
       {"false", "true"}},
      {"fp32_gradients",
       "true: gradients are added up and sent in fp32 (default: the framework's; DeepSpeed: its "
       "communication_data_type)",
       {"false", "true"}},
      {"fusion", "elementwise kernels: eager (each), fused or compiled (default: as the framework)",
       fusion_names()},
      {"eager_loss",
       "true: the loss is computed outside of the compiled graph (default: false)",
       {"false", "true"}},
      {"gradient_bucket",
       "elements whose gradients are reduced, and weights gathered, in one call (default: the "
       "framework's)",
       whole,
       {1e5, 1e11}},
      {"partition_activations",
       "true: with --recompute full, the ranks of --tp keep parts of the inputs of blocks and "
       "gather them before they compute again (default: false)",
       {"false", "true"}},
      {"cuda_graphs",
       "true: graphs replay the kernels of blocks, which the host then need not start one by one "
       "(default: false)",
       {"false", "true"}},
      {"split", "layers over stages: even, count_ends, spread, fill (default: the framework's)",
       parallel::split_method_names()},
  };
}

// Keys for states, weights and gradients that ranks share.
std::vector<WhatIfKey> sharing_keys() {
  return {
      {"shard_ranks",
       "ranks that share states under ZeRO (default: all that hold the same weights)", whole},
      {"shard_groups",
       "groups that each share states under ZeRO, in place of --shard-ranks (HSDP's "
       "data_parallel_replicate_degree)",
       whole},
      {"full_all_reduce",
       "true: ZeRO stage 1 sums all gradients on every rank, as Apex's distributed LAMB (default: "
       "false)",
       {"false", "true"}},
      {"offload_optimizer",
       "where optimizer states lie and are updated: none (on the GPU, the default), cpu",
       offload_names()},
      {"offload_activations",
       "activations that wait on the host for their backward pass: none (the default), checkpoints "
       "(inputs that --recompute full keeps, as DeepSpeed copies them), blocks:N (all of the first "
       "N), or modules as in core_attn+attn_proj"},
      {"shard_handling_us",
       "host microseconds per rank and call over sharded weights (default: the framework's)",
       number,
       {0.1, 1e5}},
      {"secondary_ranks", "hpZ: ranks of a node that share a second copy, for the backward pass",
       whole},
      {"fp8_weight_gather",
       "true: weights that are multiplied in fp8 are gathered in fp8 (default: the framework's; "
       "true for torchtitan)",
       {"false", "true"}},
      {"state_types",
       "MOMENTUM:VARIANCE:WEIGHTS, types of the states of Transformer Engine's Adam, each fp32, "
       "bf16, fp16 or fp8; of master weights fp32, fp16, or rest (the half that bf16 lacks) "
       "(default: fp32:fp32:fp32)"},
      {"quantized_weights",
       "true: qwZ, weights gathered in int8 (default: false)",
       {"false", "true"}},
      {"quantized_gradients",
       "true: qgZ, gradients exchanged in int4 (default: false)",
       {"false", "true"}},
  };
}

}  // namespace

std::span<const WhatIfKey> what_if_table() {
  static const std::vector<WhatIfKey> table = [] {
    std::vector<WhatIfKey> all;
    const auto add = [&](std::string_view group, std::vector<WhatIfKey> keys) {
      for (WhatIfKey& key : keys) {
        key.group = group;
        all.push_back(std::move(key));
      }
    };
    add("What runs where", description_keys());
    add("Optimizer", optimizer_keys());
    add("Optimizer", keys_of_one_optimizer());
    add("Batch and length of the run", run_keys());
    add(layout_group, layout_keys());
    add(layout_group, pass_keys());
    add(layout_group, sharing_keys());
    add("Simulation", simulation_keys());
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

bool is_of_description(std::string_view key) {
  return key.starts_with("cluster.") || key.starts_with("device.") || key.starts_with("model.");
}

const WhatIfKey* find_key(std::string_view name) {
  const auto table = what_if_table();
  const auto row = std::ranges::find(table, name, &WhatIfKey::name);
  return row == table.end() ? nullptr : &*row;
}

std::string_view name_of(ValueType type) {
  constexpr std::string_view names[] = {"TEXT", "N", "X", "N|%", "WORD"};
  return names[static_cast<std::size_t>(type)];
}

const std::vector<std::string>& words_of(std::string_view key) {
  const WhatIfKey* row = find_key(key);
  LAMBCAST_CHECK(row != nullptr && !row->words.empty(), "{} has no list of values", key);
  return row->words;
}

std::string help_of(const WhatIfKey& key) {
  const bool named = std::ranges::any_of(key.words, [&](const std::string& word) {
    return key.help.find(word) != std::string_view::npos;
  });
  return key.words.empty() || named ? std::string(key.help)
                                    : fmt::format("{}: {}", key.help, fmt::join(key.words, ", "));
}

}  // namespace lambcast
