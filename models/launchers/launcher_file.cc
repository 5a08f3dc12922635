#include "models/launchers/launcher_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/launchers/accelerate.h"
#include "models/launchers/neox.h"
#include "models/launchers/trainers.h"
#include "models/launchers/yaml.h"

namespace lambcast::launchers {
namespace {

// A program, recognised by a key at the start of a line that only its files have.
struct Program {
  std::string_view key, name;
  void (*read)(KeyReader&, LauncherFile&);
};

void refuse_untrained(KeyReader& keys, LauncherFile&) {
  keys.refuse(keys.either("infer_backend", "export_dir"),
              "LLaMA-Factory generates text or merges adapters with this file, and trains nothing",
              "a file with stage and finetuning_type");
}

void refuse_first_version(KeyReader& keys, LauncherFile&) {
  keys.refuse("model_class",
              "belongs to the trainers of LLaMA-Factory's version 1, which are not supported",
              "a file with stage and finetuning_type, or the run in flags");
}

// Programs whose YAML is recognised and not read.
struct OtherProgram {
  std::string_view key, name;
};
constexpr OtherProgram other_programs[] = {
    {"_component_", "torchtune"},
    {"apiVersion", "Kubernetes"},
    {"services", "Docker Compose"},
    {"trainer", "NeMo, Lightning or Levanter"},
    {"max_seq_len", "LLM Foundry"},
    {"device_train_microbatch_size", "LLM Foundry or OLMo"},
    {"actor_rollout_ref", "verl"},
    {"per_device_train_batch_size", "Hugging Face's Trainer or TRL"},
    {"_target_", "Megatron-Bridge or NeMo 2"},
    {"parallelism", "nanotron"},
    {"base_config", "MaxText"},
    {"per_device_batch_size", "MaxText"},
    {"work_group", "Primus"},
    {"num_nodes", "SkyPilot"}};

constexpr Program programs[] = {{"compute_environment", "Hugging Face Accelerate", read_accelerate},
                                {"distributed_type", "Hugging Face Accelerate", read_accelerate},
                                {"finetuning_type", "LLaMA-Factory", read_llama_factory},
                                {"infer_backend", "LLaMA-Factory", refuse_untrained},
                                {"export_dir", "LLaMA-Factory", refuse_untrained},
                                {"model_class", "LLaMA-Factory", refuse_first_version},
                                {"base_model", "axolotl", read_axolotl}};

// Returns whether the text has "key:", also with the key in quotes, at its beginning or after one
// of the characters in `before`.
bool has_key(std::string_view text, std::string_view key, std::string_view before = "\n") {
  for (std::size_t at = text.find(key); at != text.npos; at = text.find(key, at + 1))
    if (const std::string_view rest = text.substr(at + key.size());
        (at == 0 || before.find(text[at - 1]) != before.npos) &&
        (rest.starts_with(':') || (rest.starts_with("\":") && at > 0 && text[at - 1] == '"')))
      return true;
  return false;
}

constexpr Program neox{"pipe_parallel_size", "GPT-NeoX", read_neox};

// Returns whether one of GPT-NeoX's own keys occurs outside comments. In its keys '-' and '_' are
// equivalent.
bool has_neox_key(std::string_view text) {
  for (const std::string_view key : {"pipe_parallel_size", "pipe-parallel-size"})
    for (std::size_t at = text.find(key); at != text.npos; at = text.find(key, at + 1)) {
      const std::size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
      if (text.substr(begin, at - begin).find_first_not_of(" \t{\"'") == text.npos) return true;
    }
  return false;
}

const Program* program_of(std::string_view text) {
  if (has_neox_key(text)) return &neox;
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos) return nullptr;
  const bool braces = text[begin] == '{';
  const auto found = std::ranges::find_if(programs, [&](const Program& program) {
    return has_key(text, program.key, braces ? "{ ,\n\"" : "\n");
  });
  return found == std::end(programs) ? nullptr : found;
}

const OtherProgram* other_program_of(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos || text[begin] == '{') return nullptr;
  const auto found = std::ranges::find_if(other_programs, [&](const OtherProgram& other) {
    return has_key(text, other.key, other.key.starts_with('_') ? " \n" : "\n");
  });
  return found == std::end(other_programs) ? nullptr : found;
}

// Short files with which the readers together look up every key that they can read.
constexpr std::string_view least_files[] = {
    "distributed_type: DEEPSPEED\ndeepspeed_config: {x: 1}\nparallelism_config: {x: 1}\n"
    "dynamo_config: {x: 1}\n",
    "distributed_type: FSDP\nfsdp_config: {x: 1}\n",
    "distributed_type: MEGATRON_LM\nmegatron_lm_config: {x: 1}\n",
    "finetuning_type: lora\nquantization_bit: 4\n",
    "base_model: x\nadapter: lora\n",
    "base_model: x\nfsdp_config: {x: 1}\n",
    "pipe_parallel_size: 1\nnum_layers: 2\nhidden_size: 8\nnum_attention_heads: 2\n"
    "seq_length: 8\ncheckpoint_activations: true\npartition_activations: true\n"};

}  // namespace

std::map<std::string_view, KeysOfFormat> keys_by_program() {
  std::map<std::string_view, KeysOfFormat> all;
  for (const std::string_view text : least_files) {
    LauncherFile file = decode(text, "least file");
    KeysOfFormat& keys = all[file.program];
    keys.applied.merge(file.keys.applied);
    for (const CostlessKeys& group : file.keys.costless)
      if (std::ranges::find(keys.costless, group.keys, &CostlessKeys::keys) == keys.costless.end())
        keys.costless.push_back(group);
  }
  return all;
}

bool is_launcher_file(std::string_view text) {
  return program_of(text) != nullptr || other_program_of(text) != nullptr;
}

LauncherFile decode(std::string_view text, const std::string& file) {
  LauncherFile result;
  hjson::Value root = parse_yaml(text, file);
  const Program* program = program_of(text);
  KeyReader keys(root, "", file, result);
  if (const OtherProgram* other = other_program_of(text); program == nullptr && other != nullptr)
    keys.refuse(other->key, fmt::format("is a key of {}, whose files are not read", other->name),
                "the run in flags, or the DeepSpeed JSON that the file names");
  if (program == nullptr)
    fail_input({file, 0, {}}, "is not a file of Accelerate, LLaMA-Factory, axolotl or GPT-NeoX");
  if (program == &neox)
    for (hjson::Member& member : root.members) std::ranges::replace(member.key, '-', '_');
  result.program = program->name;
  program->read(keys, result);
  std::ranges::stable_sort(result.ledger, {}, &LedgerEntry::line);
  return result;
}

}  // namespace lambcast::launchers
