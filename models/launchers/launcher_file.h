// YAML files of programs that launch a training, as what-if keys and a DeepSpeed JSON.
//
//   Accelerate     num_processes, num_machines, mixed_precision; by distributed_type:
//                  DEEPSPEED   deepspeed_config: stage, accumulation, clipping, offloading, or the
//                              JSON that it names
//                  FSDP        fsdp_config: sharding strategy, reshard_after_forward, activation
//                              checkpointing; forecast as in torchtitan
//                  MEGATRON_LM megatron_lm_config: degrees, accumulation, distributed optimizer
//                  MULTI_GPU, NO   PyTorch's DDP
//   LLaMA-Factory  batch, cutoff_len, precision, optim, finetuning_type with LoRA and its targets,
//                  quantization_bit, gradient checkpointing (on unless disabled), the DeepSpeed
//                  JSON that it names, else DDP
//   axolotl        the same with its names; fsdp; tensor and context parallel sizes
//   GPT-NeoX       model, degrees, batch, and the DeepSpeed JSON that results from its keys
//
// The model of LLaMA-Factory and axolotl is a name on Hugging Face's hub: --model gives it.
// Sources: accelerate 16cb6eb (commands/config/config_args.py, utils/dataclasses.py), LLaMA-Factory
// ff6d4d1 (hparams), axolotl 067b021 (utils/schemas), gpt-neox ea7aefd (neox_arguments).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/finding.h"
#include "models/key_ledger.h"

namespace lambcast::launchers {

struct LauncherFile {
  std::string_view program;
  // The keys (named like the flags) and values of a what-if: {"gpus", "16"}.
  std::vector<std::pair<std::string, std::string>> what_if;
  std::string config;       // resulting DeepSpeed JSON; empty for none
  std::string config_path;  // path of the DeepSpeed JSON that the file names; empty for none
  std::string model;        // description in TOML; empty if the file has no model
  std::vector<Finding> findings;
  std::vector<LedgerEntry> ledger;  // nested keys as "fsdp_config.fsdp_version"
  KeysOfFormat keys;                // keys that the reader looked up, also those that are absent
};

// Returns whether a text is a YAML file of one of these programs.
bool is_launcher_file(std::string_view text);

// Decodes a launcher's file. Throws Error (usage) with file, line and key.
LauncherFile decode(std::string_view text, const std::string& file);

// Returns the keys that the reader of each program looks up, by the program's name.
std::map<std::string_view, KeysOfFormat> keys_by_program();

}  // namespace lambcast::launchers
