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
    {"trainer", "NeMo or Lightning"},
    {"max_seq_len", "LLM Foundry"},
    {"per_device_train_batch_size", "Hugging Face's Trainer or TRL"}};

constexpr Program programs[] = {{"compute_environment", "Hugging Face Accelerate", read_accelerate},
                                {"distributed_type", "Hugging Face Accelerate", read_accelerate},
                                {"finetuning_type", "LLaMA-Factory", read_llama_factory},
                                {"infer_backend", "LLaMA-Factory", refuse_untrained},
                                {"export_dir", "LLaMA-Factory", refuse_untrained},
                                {"model_class", "LLaMA-Factory", refuse_first_version},
                                {"base_model", "axolotl", read_axolotl}};

// Returns whether the text has "key:" at its beginning or after one of the characters in `before`.
bool has_key(std::string_view text, std::string_view key, std::string_view before = "\n") {
  for (std::size_t at = text.find(key); at != text.npos; at = text.find(key, at + 1))
    if ((at == 0 || before.find(text[at - 1]) != before.npos) &&
        text.substr(at + key.size()).starts_with(':'))
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
  // A YAML map in braces has unquoted keys. The quoted keys of JSON are not found.
  const bool braces = text[begin] == '{';
  const auto found = std::ranges::find_if(programs, [&](const Program& program) {
    return has_key(text, program.key, braces ? "{ ,\n" : "\n");
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

}  // namespace

bool is_launcher_file(std::string_view text) {
  return program_of(text) != nullptr || other_program_of(text) != nullptr;
}

LauncherFile decode(std::string_view text, const std::string& file) {
  LauncherFile result;
  hjson::Value root = parse_yaml(text, file);
  const Program* program = program_of(text);
  KeyReader keys(root, "", file, result);
  if (const OtherProgram* other = other_program_of(text); program == nullptr && other != nullptr)
    keys.refuse(other->key, fmt::format("is of {}, whose files are not read", other->name),
                "the run in flags, or the DeepSpeed JSON that the file names");
  if (program == nullptr)
    fail_input({file, 0, {}}, "is no file of Accelerate, LLaMA-Factory, axolotl or GPT-NeoX");
  if (program == &neox)
    for (hjson::Member& member : root.members) std::ranges::replace(member.key, '-', '_');
  result.program = program->name;
  program->read(keys, result);
  std::ranges::stable_sort(result.ledger, {}, &LedgerEntry::line);
  return result;
}

}  // namespace lambcast::launchers
