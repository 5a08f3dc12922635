#include "validate/program/log_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/megatron/arguments.h"
#include "models/megatron/known_arguments.h"
#include "models/torchtitan/config.h"
#include "models/torchtitan/known_keys.h"
#include "sim/base/error.h"

namespace lambcast {
namespace {

using Json = nlohmann::json;

// A name that programs print with a value, and the key that it fills. If `when` is set, that value
// sets the key to `then`.
struct PrintedName {
  std::string_view name, key, when = {}, then = {};
};

constexpr PrintedName printed_names[] = {
    {"global_batch_size", "global_batch"},
    {"train_batch_size", "global_batch"},
    {"Total train batch size (w. parallel, distributed & accumulation)", "global_batch"},
    {"micro_batch_size", "micro_batch"},
    {"train_micro_batch_size_per_gpu", "micro_batch"},
    {"Instantaneous batch size per device", "micro_batch"},
    {"global batch size", "global_batch"},
    {"gradient_accumulation_steps", "grad_accum"},
    {"gradient accumulation steps", "grad_accum"},
    {"Gradient Accumulation steps", "grad_accum"},
    {"zero_optimization_stage", "zero_stage"},
    {"\"stage\"", "zero_stage"},
    {"bfloat16_enabled", "precision", "True", "bf16"},
    {"fp16_enabled", "precision", "True", "fp16"},
    {"optimizer_name", "optimizer", "adam", "adam"},
    {"optimizer_name", "optimizer", "adamw", "adamw"},
    {"optimizer_name", "optimizer", "lamb", "lamb"},
    {"optimizer_name", "optimizer", "onebitadam", "onebit_adam"},
    {"optimizer_name", "optimizer", "onebitlamb", "onebit_lamb"},
    {"optimizer_name", "optimizer", "zerooneadam", "zero_one_adam"},
    {"tensor_model_parallel_size", "tp"},
    {"pipeline_model_parallel_size", "pp"},
    {"context_parallel_size", "cp"},
    {"expert_model_parallel_size", "ep"},
    {"seq_length", "seq_len"},
    {"maximum context length", "seq_len"},
    {"num_layers", "model.layers"},
    {"num_hidden_layers", "model.layers"},
    {"hidden_size", "model.hidden"},
    {"num_attention_heads", "model.heads"},
    {"vocab_size", "model.vocab"},
    {"All distributed processes registered. Starting with", "gpus"},
    {"world_size ...", "dp"},  // DeepSpeed's, without the ranks that divide the model
};

// Arguments of Megatron-LM that are left out: those about the length of the run, those that any
// program sets, and those that repeat others.
constexpr std::string_view left_out_arguments[] = {
    "train-iters",        "train-samples",      "train-tokens",       "rampup-batch-size",
    "encoder-num-layers", "decoder-num-layers", "encoder-seq-length", "decoder-seq-length",
    "bert-load",          "bert-embedder-type", "mask-prob",          "mask-type",
    "mask-factor",        "short-seq-prob",     "vocab-size",         "bert-no-binary-head"};

// The argument from which a compared key is read.
constexpr std::pair<std::string_view, std::string_view> argument_of_key[] = {
    {"tp", "tensor-model-parallel-size"},
    {"pp", "pipeline-model-parallel-size"},
    {"cp", "context-parallel-size"},
    {"ep", "expert-model-parallel-size"},
    {"gpus", "world-size"},
    {"micro_batch", "micro-batch-size"},
    {"global_batch", "global-batch-size"},
    {"seq_len", "seq-length"},
    {"precision", "bf16"},
    {"recompute", "recompute-granularity"},
    {"zero_stage", "use-distributed-optimizer"},
    {"model.layers", "num-layers"},
    {"model.hidden", "hidden-size"},
    {"model.heads", "num-attention-heads"},
    {"model.vocab", "padded-vocab-size"},
    {"optimizer", "optimizer"},
    {"attention", "attention-backend"}};

// Values as printed by Python.
constexpr std::pair<std::string_view, std::string_view> words_of_python[] = {
    {"AttnBackend.flash", "flash"},
    {"AttnBackend.fused", "fused"},
    {"AttnBackend.unfused", "unfused"},
    {"AttnBackend.local", "local"},
    {"AttnBackend.auto", "auto"},
    {"PositionEmbeddingType.absolute", "learned_absolute"},
    {"PositionEmbeddingType.rotary", "rope"},
    {"PositionEmbeddingType.alibi", "alibi"},
    {"torch.float32", "fp32"},
    {"torch.float16", "fp16"},
    {"torch.bfloat16", "bf16"},
    {"torch.uint8", "fp8"}};

constexpr std::size_t most_text = std::size_t{16} << 20;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// Returns the value after a name and one of " .... ", ": ", " = " or '": '; empty if there is none.
// Thousands separators are removed from numbers.
std::string value_behind(std::string_view line, std::string_view name) {
  const auto at = line.find(name);
  if (at == line.npos || (at > 0 && (is_word(line[at - 1]) || line[at - 1] == '-'))) return {};
  const std::string_view rest = line.substr(at + name.size());
  const auto begin = rest.find_first_not_of(" .:=\"'");
  if (begin == 0 || begin == rest.npos) return {};
  std::string value;
  for (std::size_t i = begin; i < rest.size() && (is_word(rest[i]) || rest[i] == ','); ++i)
    if (rest[i] != ',') value += rest[i];
  return value;
}

bool is_count(const std::string& value) {
  return !value.empty() && value != "0" &&
         std::ranges::all_of(value, [](char c) { return c >= '0' && c <= '9'; });
}

// The block of arguments that Megatron-LM prints, converted to an argument list.
class ArgumentBlock {
 public:
  // Reads the line if it belongs to the block; returns whether it does.
  bool read(std::string_view line, int number) {
    if (line.find("-- arguments --") != line.npos) {  // the last start counts
      given_.clear();
      inside_ = true;
      first_line_ = number;
    }
    if (line.find("end of arguments") != line.npos) inside_ = false;
    // The line " > padded vocab (size: 50257) with 47 dummy tokens (new size: 50304)" follows the
    // block.
    if (line.find("padded vocab (size:") != line.npos && !given_.empty())
      given_.emplace("padded-vocab-size", std::pair(value_behind(line, "new size"), number));
    if (inside_) read_argument(line, number);
    return inside_;
  }

  bool empty() const { return given_.empty(); }

  // Returns the settings. Throws Error (usage) with the line for arguments that are not modelled.
  LogSettings settings(const std::string& file) const {
    const megatron::Arguments decoded = megatron::decode(argument_list(), file);
    LogSettings settings;
    for (const auto& [key, value] : decoded.what_if) settings.all.push_back(setting(key, value));
    if (given_.contains("recompute-granularity") && settings.find("recompute") == nullptr)
      settings.all.push_back(setting("recompute", "none"));
    // The argument does not state which kernel of flash attention runs, so it is only compared.
    const std::string attention = given("attention-backend");
    if ((attention == "flash" || attention == "fused") && settings.find("attention") == nullptr) {
      settings.all.push_back(setting("attention", "flash"));
      settings.all.back().fills = false;
    }
    for (const char* key : {"model.layers", "model.hidden", "model.heads", "model.vocab"})
      if (const std::string value = given(argument_of(key)); is_count(value))
        settings.all.push_back(setting(key, value));
    if (!decoded.model.empty() && !decoded.lacks_vocabulary) settings.model = decoded.model;
    settings.begin = first_line_;
    return settings;
  }

 private:
  static std::string argument_of(std::string_view key) {
    for (const auto& [ours, argument] : argument_of_key)
      if (ours == key) return std::string(argument);
    return "arguments";
  }

  LogSetting setting(const std::string& key, const std::string& value) const {
    const std::string name = argument_of(key);
    const auto found = given_.find(name);
    return {key, value, name, found == given_.end() ? first_line_ : found->second.second};
  }

  // Reads "  name ...... value".
  void read_argument(std::string_view line, int number) {
    const auto dots = line.find(" ..");
    if (dots == line.npos) return;
    std::string name(line.substr(0, dots));
    name.erase(0, name.find_last_of(" \t:") + 1);
    std::ranges::replace(name, '_', '-');
    std::string value(line.substr(std::min(line.find_first_not_of(" .", dots), line.size())));
    while (!value.empty() && (value.back() == '\r' || value.back() == ' ')) value.pop_back();
    std::erase_if(value, [](char c) { return c == '[' || c == ']' || c == '\'' || c == ','; });
    for (const auto& [python, ours] : words_of_python)
      if (value == python) value = ours;
    if (!value.empty()) given_.emplace(name, std::pair(value, number));
  }

  std::string given(const std::string& name) const {
    const auto found = given_.find(name);
    return found == given_.end() ? std::string() : found->second.first;
  }

  // Returns the flag of an attribute; empty for attributes that are not flags or have their
  // default.
  std::string argument(const std::string& name, const std::string& value) const {
    if (name == "add-bias-linear" && value == "False") return "--disable-bias-linear";
    if (value == "None" || value == "False") return {};
    if (name == "padded-vocab-size") return "--vocab-size " + value;
    if (name == "fp8") return "--fp8-format " + value;
    // Releases of 2021 and 2022 use these names.
    if (name == "activations-checkpoint-method") return "--checkpoint-activations";
    if (name == "tokenizer-type" && value.starts_with("Bert")) return "--mask-prob 0.15";
    const bool usual = (name == "moe-layer-freq" && value == "1") ||
                       (name == "hybrid-attention-ratio" && value == "0.0") ||
                       (name.starts_with("expert-") && given("num-experts") == "None");
    if (usual || std::ranges::find(left_out_arguments, name) != std::end(left_out_arguments) ||
        !megatron::bears_on_cost(name))
      return {};
    return value == "True" ? "--" + name : fmt::format("--{} {}", name, value);
  }

  // Each argument is on the same line as in the log.
  std::string argument_list() const {
    std::map<int, std::string> lines;
    for (const auto& [name, value] : given_) lines[value.second] = argument(name, value.first);
    std::string list;
    int at = 1;
    for (const auto& [line, words] : lines) {
      list.append(static_cast<std::size_t>(line - at), '\n');
      list += words;
      at = line;
    }
    return list;
  }

  bool inside_ = false;
  int first_line_ = 0;
  std::map<std::string, std::pair<std::string, int>> given_;  // value and line by name
};

// Returns a job of torchtitan as TOML, by the sections and keys of job files.
std::string job_file(std::string_view text) {
  const Json job = Json::parse(text, nullptr, false);
  std::string toml;
  if (!job.is_object()) return toml;
  for (const auto& [section, names] : torchtitan::known_keys()) {
    if (!job.contains(section) || !job[section].is_object()) continue;
    toml += fmt::format("[{}]\n", section);
    for (const auto& [key, value] : job[section].items())
      if (std::ranges::find(names, key) != names.end() && !value.is_null() && !value.is_object())
        toml += fmt::format("{} = {}\n", key, value.dump());
  }
  return toml;
}

// Returns the whole numbers in a text, without those above 2^24.
std::vector<std::int64_t> numbers_in(std::string_view text) {
  std::vector<std::int64_t> numbers;
  const char *at = text.data(), *const last = at + text.size();
  while (at < last) {
    std::int64_t number = 0;
    const auto [end, status] = std::from_chars(at, last, number);
    if (status == std::errc{} && number <= 1 << 24) numbers.push_back(number);
    at = std::max(end, at + 1);
  }
  return numbers;
}

// Returns the words in single quotes.
std::vector<std::string> quoted_words(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t begin = text.find('\''); begin != text.npos; begin = text.find('\'', begin)) {
    const std::size_t end = std::min(text.find('\'', begin + 1), text.size());
    words.emplace_back(text.substr(begin + 1, end - begin - 1));
    begin = end + 1;
  }
  return words;
}

// Returns the GPUs and sizes in "Building 2-D device mesh with ['dp_shard', 'tp'], [8, 8]".
std::vector<LogSetting> settings_of_mesh(std::string_view text, int line) {
  const std::vector<std::string> names = quoted_words(text);
  const std::vector<std::int64_t> sizes = numbers_in(text.substr(text.rfind('[') + 1));
  std::int64_t ranks = sizes.empty() ? 0 : 1;
  for (const std::int64_t size : sizes) ranks = std::clamp<std::int64_t>(ranks * size, 0, 1 << 24);
  std::vector<LogSetting> settings;
  if (ranks > 0) settings.push_back({"gpus", fmt::format("{}", ranks), "device mesh", line});
  for (std::size_t i = 0; i < std::min(names.size(), sizes.size()); ++i)
    if (const std::string& name = names[i]; name == "tp" || name == "pp" || name == "cp")
      settings.push_back({name, fmt::format("{}", sizes[i]), "device mesh, " + name, line});
  return settings;
}

[[noreturn]] void refuse_contradiction(const std::string& file, const LogSetting& one,
                                       const std::string& is, const LogSetting& other) {
  fail_input({file, one.line, one.name},
             fmt::format("{} contradicts line {} of the log, where {} is {}; try: the log of one "
                         "job alone",
                         is, other.line, other.name, other.value));
}

// Throws Error (usage) unless the GPUs are the product of the sizes that divide the model and of
// the replicas. With some sizes missing, the product of the others must divide the GPUs.
void check_world(const LogSettings& settings, const std::string& file) {
  const LogSetting* gpus = settings.find("gpus");
  if (gpus == nullptr) return;
  const std::int64_t world = numbers_in(gpus->value).front();
  std::int64_t product = 1;
  bool is_whole = true;
  for (const char* key : {"dp", "pp", "tp", "cp"}) {
    const LogSetting* size = settings.find(key);
    const bool may_be_absent = std::string_view(key) == "cp";
    if (size == nullptr) is_whole = is_whole && may_be_absent;
    if (size == nullptr) continue;
    product *= std::max<std::int64_t>(numbers_in(size->value).front(), 1);
    if (world % product != 0 || product > world)
      refuse_contradiction(
          file, *size,
          fmt::format("{} makes {} ranks with the sizes before it, which", size->value, product),
          *gpus);
  }
  if (is_whole && product != world)
    refuse_contradiction(file, *settings.find("dp"),
                         fmt::format("{} makes {} ranks with tp, pp and cp, which",
                                     settings.find("dp")->value, product),
                         *gpus);
}

class SettingsReader {
 public:
  SettingsReader(std::string_view text, const std::string& file) : file_(file) {
    text = text.substr(0, most_text);
    for (int line = 1; !text.empty(); ++line) {
      const auto end = std::min(text.find('\n'), text.size());
      read_line(text.substr(0, end), line);
      text.remove_prefix(std::min(end + 1, text.size()));
    }
  }

  // Takes the ZeRO stage from DeepSpeed's own configuration, and all other settings from the
  // arguments.
  LogSettings settings() const {
    const LogSettings arguments = block_.empty() ? LogSettings() : block_.settings(file_);
    LogSettings settings{{}, arguments.model, arguments.begin};
    const auto add = [&](const LogSetting& setting) {
      if (settings.find(setting.key) == nullptr) settings.all.push_back(setting);
    };
    for (const LogSetting& setting : printed_)
      if (setting.key == "zero_stage") add(setting);
    for (const LogSetting& setting : arguments.all) add(setting);
    for (const LogSetting& setting : printed_) add(setting);
    for (const LogSetting& mesh : meshes_) {
      const LogSetting* other = settings.find(mesh.key);
      if (other != nullptr && other->value != mesh.value)
        refuse_contradiction(file_, mesh, mesh.value, *other);
      add(mesh);
    }
    check_world(settings, file_);
    return settings;
  }

 private:
  void read_line(std::string_view line, int number) {
    if (block_.read(line, number)) return;
    if (const auto at = line.find("Running with configs: {"); at != line.npos) {
      if (const std::string job = job_file(line.substr(line.find('{', at))); !job.empty())
        for (const auto& [key, value] :
             torchtitan::decode(job, fmt::format("{} (job in line {})", file_, number)).what_if)
          // The job has no key for its kernel of attention, so the flag `unfused` does not
          // contradict it.
          printed_.push_back({key, value, "configs", number, key == "attention" ? "unfused" : ""});
      return;
    }
    // The last start counts, if there are several.
    if (const auto at = line.find("device mesh with ["); at != line.npos)
      meshes_ = settings_of_mesh(line.substr(at), number);
    for (const PrintedName& printed : printed_names) {
      const std::string value = value_behind(line, printed.name);
      const bool stage_0 = printed.key == "zero_stage" && value == "0";
      if (printed.when.empty() ? is_count(value) || stage_0 : value == printed.when)
        printed_.push_back(
            {std::string(printed.key), printed.when.empty() ? value : std::string(printed.then),
             std::string(printed.name.substr(0, printed.name.find(" ..."))), number});
    }
  }

  const std::string& file_;
  ArgumentBlock block_;
  std::vector<LogSetting> printed_, meshes_;
};

}  // namespace

const LogSetting* LogSettings::find(std::string_view key) const {
  const auto found = std::ranges::find(all, key, &LogSetting::key);
  return found == all.end() ? nullptr : &*found;
}

LogSettings read_log_settings(std::string_view text, const std::string& file) {
  return SettingsReader(text, file).settings();
}

}  // namespace lambcast
