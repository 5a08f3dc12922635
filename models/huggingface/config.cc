#include "models/huggingface/config.h"

#include <fmt/format.h>

#include <optional>

#include "models/huggingface/architectures.h"

namespace lambcast::huggingface {
namespace {

struct Architecture {
  const char* model_type;
  const char* family;
  void (*describe)(ConfigReader&, Description&);
};

constexpr Architecture architectures[] = {{"llama", "decoder", describe_llama},
                                          {"mistral", "decoder", describe_mistral},
                                          {"qwen2", "decoder", describe_qwen2},
                                          {"qwen3", "decoder", describe_qwen3},
                                          {"gemma", "decoder", describe_gemma},
                                          {"gemma2", "decoder", describe_gemma2},
                                          {"gemma3_text", "decoder", describe_gemma3},
                                          {"phi", "decoder", describe_phi},
                                          {"phi3", "decoder", describe_phi3},
                                          {"olmo2", "decoder", describe_olmo2},
                                          {"olmo3", "decoder", describe_olmo2},
                                          {"starcoder2", "decoder", describe_starcoder2},
                                          {"gpt_neox", "decoder", describe_gpt_neox},
                                          {"opt", "decoder", describe_opt},
                                          {"falcon", "decoder", describe_falcon},
                                          {"granite", "decoder", describe_llama},
                                          {"smollm3", "decoder", describe_smollm3},
                                          {"cohere", "decoder", describe_cohere},
                                          {"mixtral", "moe-llama", describe_mixtral},
                                          {"qwen3_moe", "moe", describe_qwen3_moe},
                                          {"deepseek_v3", "moe", describe_deepseek_v3},
                                          {"gpt_oss", "moe", describe_gpt_oss},
                                          {"gpt2", "gpt", describe_gpt2},
                                          {"bert", "bert", describe_bert}};

// Parts that cost something and are not counted, if a file has them.
struct LeftOut {
  const char* key;
  const char* what;
};

constexpr LeftOut left_out_keys[] = {
    {"attn_logit_softcapping", "a cap on the scores of attention"},
    {"final_logit_softcapping", "a cap on logits"},
    {"quantization_config",
     "weights of fewer bits: all are taken to be of the run's precision, and trained"},
    {"no_rope_layers", "layers whose heads are not turned by positions: all are taken to be"},
    {"partial_rotary_factor", "heads of which positions turn a part: all is taken to be turned"},
    {"rotary_pct", "heads of which positions turn a part: all is taken to be turned"}};

bool is_whole(const hjson::Value& value) {
  return value.kind == hjson::Kind::null ||
         (value.kind == hjson::Kind::number && value.number == 1);
}

const Architecture& architecture_of(ConfigReader& config) {
  const std::string type = config.word("model_type");
  if (config.has("text_config"))
    config.refuse("text_config", fmt::format("{}, of more than text,", type),
                  "a file with its text_config alone");
  std::vector<std::string> known;
  for (const Architecture& architecture : architectures) {
    if (type == architecture.model_type) return architecture;
    known.emplace_back(architecture.model_type);
  }
  fail_unknown(config.where("model_type"), "architecture", type, known);
}

// Architectures whose head is over the vocabulary, as every family here has it.
bool has_word_head(std::string_view name) {
  for (const char* end : {"ForCausalLM", "LMHeadModel", "ForMaskedLM", "ForPreTraining"})
    if (name.ends_with(end)) return true;
  return false;
}

// The labels of a sequence classifier on a dense decoder or BERT; nothing for other classes.
// Source: transformers 4.57, modeling_layers.py and models/bert/modeling_bert.py.
std::optional<std::int64_t> labels_of(const hjson::Value& root, std::string_view family) {
  const hjson::Value* names = root.find("architectures");
  const bool classifier = names != nullptr && !names->items.empty() &&
                          names->items.front().text.ends_with("ForSequenceClassification");
  if (!classifier || (family != "decoder" && family != "bert")) return std::nullopt;
  const hjson::Value* by_id = root.find("id2label");
  if (by_id != nullptr && !by_id->members.empty())
    return static_cast<std::int64_t>(by_id->members.size());
  const hjson::Value* count = root.find("num_labels");
  return count != nullptr && count->whole ? *count->whole : 2;
}

// A sentence about a head that is another one.
std::vector<std::string> other_head(const hjson::Value& root, const std::string& file) {
  const hjson::Value* names = root.find("architectures");
  const hjson::Value* type = root.find("model_type");
  if (names == nullptr || names->items.empty() || has_word_head(names->items.front().text))
    return {};
  for (const Architecture& architecture : architectures)
    if (type != nullptr && type->text == architecture.model_type &&
        labels_of(root, architecture.family))
      return {};
  return {describe({file, names->line, "architectures"},
                   fmt::format("not modelled: the head of {}: one over the vocabulary is taken, "
                               "with its weights and its loss",
                               names->items.front().text))};
}

// Values of a class where a file leaves them out.
// Source: transformers 4.57, models/gemma3/configuration_gemma3.py (Gemma3TextConfig).
constexpr std::string_view gemma3_defaults =
    R"({"vocab_size": 262208, "hidden_size": 2304, "intermediate_size": 9216,
        "num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads": 4,
        "head_dim": 256, "max_position_embeddings": 131072, "sliding_window": 4096})";

// Adds the values that the file leaves out. A misspelt key is refused as it is without them.
void add_defaults(hjson::Value& root, const std::string& file) {
  const hjson::Value* type = root.find("model_type");
  if (type == nullptr || type->text != "gemma3_text") return;
  const hjson::Value defaults = hjson::parse(gemma3_defaults, file);
  ConfigReader config(root, file);
  std::vector<hjson::Member> missing;
  for (const hjson::Member& member : defaults.members)
    if (!config.has(member.key)) missing.push_back(member);
  config.refuse_misspelt();
  for (hjson::Member& member : missing) {
    std::erase_if(root.members, [&](const auto& other) { return other.key == member.key; });
    root.members.push_back(std::move(member));
  }
}

// "models/Llama-3-8B/config.json" is Llama-3-8B, "mixtral.json" mixtral.
std::string name_of_file(std::string_view file) {
  std::string_view name = file;
  if (name.ends_with("/config.json")) name.remove_suffix(12);
  name = name.substr(name.rfind('/') + 1);
  if (name.ends_with(".json")) name.remove_suffix(5);
  std::string safe;
  for (const char c : name)
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
        c == '_' || c == '.')
      safe += c;
  return safe.empty() ? "model" : safe;
}

}  // namespace

std::string description_of(std::string_view json, const std::string& file) {
  hjson::Value root = hjson::parse(json, file);
  add_defaults(root, file);
  ConfigReader config(root, file);
  const Architecture& architecture = architecture_of(config);
  Description model;
  model.set("name", name_of_file(file));
  model.set("family", architecture.family);
  model.set("kind", "published");
  model.set("source", fmt::format("config.json of model_type {}", architecture.model_type));
  architecture.describe(config, model);
  if (const auto labels = labels_of(root, architecture.family)) model.set("labels", *labels);
  config.refuse_misspelt();
  return model.text();
}

std::vector<std::string> left_out(std::string_view json, const std::string& file) {
  const hjson::Value root = hjson::parse(json, file);
  std::vector<std::string> sentences = other_head(root, file);
  for (const LeftOut& key : left_out_keys)
    if (const hjson::Value* value = root.find(key.key); value != nullptr && !is_whole(*value))
      sentences.push_back(
          describe({file, value->line, key.key}, fmt::format("not modelled: {}", key.what)));
  return sentences;
}

}  // namespace lambcast::huggingface
