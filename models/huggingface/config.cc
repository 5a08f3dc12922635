#include "models/huggingface/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "models/huggingface/architectures.h"
#include "models/huggingface/costless_keys.h"
#include "models/huggingface/heads.h"

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
                                          {"internlm2", "decoder", describe_internlm2},
                                          {"seed_oss", "decoder", describe_seed_oss},
                                          {"glm", "decoder", describe_glm4},
                                          {"glm4", "decoder", describe_glm4},
                                          {"nemotron", "decoder", describe_nemotron},
                                          {"stablelm", "decoder", describe_stablelm},
                                          {"exaone4", "decoder", describe_exaone4},
                                          {"ernie4_5", "decoder", describe_ernie4_5},
                                          {"arcee", "decoder", describe_arcee},
                                          {"apertus", "decoder", describe_apertus},
                                          {"cohere2", "decoder", describe_cohere2},
                                          {"ministral", "decoder", describe_mistral},
                                          {"olmo", "decoder", describe_llama},
                                          {"qwen2_vl", "decoder", describe_qwen2},
                                          {"qwen2_vl_text", "decoder", describe_qwen2},
                                          {"qwen2_5_vl", "decoder", describe_qwen2},
                                          {"qwen2_5_vl_text", "decoder", describe_qwen2},
                                          {"qwen3_vl_text", "decoder", describe_qwen3},
                                          {"bloom", "decoder", describe_bloom},
                                          {"gpt_bigcode", "decoder", describe_gpt_bigcode},
                                          {"modernbert", "decoder", describe_modernbert},
                                          {"qwen2_moe", "moe", describe_qwen2_moe},
                                          {"qwen3_vl_moe_text", "moe", describe_qwen3_moe},
                                          {"deepseek_v2", "moe", describe_deepseek_v3},
                                          {"kimi_k2", "moe", describe_deepseek_v3},
                                          {"olmoe", "moe", describe_olmoe},
                                          {"phimoe", "moe", describe_phimoe},
                                          {"glm4_moe", "moe", describe_glm4_moe},
                                          {"dots1", "moe", describe_glm4_moe},
                                          {"minimax_m2", "moe", describe_minimax_m2},
                                          {"llama4_text", "moe", describe_llama4},
                                          {"ernie4_5_moe", "moe", describe_ernie4_5_moe},
                                          {"granitemoe", "moe", describe_granitemoe},
                                          {"roberta", "bert", describe_roberta},
                                          {"xlm-roberta", "bert", describe_roberta},
                                          {"camembert", "bert", describe_roberta},
                                          {"electra", "bert", describe_electra},
                                          {"albert", "bert", describe_albert},
                                          {"deberta", "bert", describe_deberta},
                                          {"deberta-v2", "bert", describe_deberta},
                                          {"distilbert", "bert", describe_distilbert},
                                          {"t5", "t5", describe_t5},
                                          {"mt5", "t5", describe_t5},
                                          {"bart", "t5", describe_bart},
                                          {"mbart", "t5", describe_bart},
                                          {"vit", "vit", describe_vit},
                                          {"deit", "vit", describe_vit},
                                          {"gpt2", "gpt", describe_gpt2},
                                          {"bert", "bert", describe_bert}};

// Architectures outside all supported families, with the part that no family has.
struct Unmodelled {
  std::string_view model_type, part;
};
constexpr std::string_view state_space = "layers of a state-space model (Mamba)";
constexpr std::string_view linear_attention = "layers of linear attention";
constexpr std::string_view sparse_attention = "attention to the tokens that an indexer picks";
constexpr Unmodelled unmodelled[] = {{"deepseek_v32", sparse_attention},
                                     {"deepseek_v4", sparse_attention},
                                     {"glm_moe_dsa", sparse_attention},
                                     {"minimax_m3", sparse_attention},
                                     {"minimax_m3_vl", sparse_attention},
                                     {"qwen3_next", linear_attention},
                                     {"qwen3_5_text", linear_attention},
                                     {"qwen3_5_moe_text", linear_attention},
                                     {"kimi_linear", linear_attention},
                                     {"minimax", linear_attention},
                                     {"minimax_text_01", linear_attention},
                                     {"minimax_m1", linear_attention},
                                     {"rwkv", linear_attention},
                                     {"mamba", state_space},
                                     {"mamba2", state_space},
                                     {"falcon_mamba", state_space},
                                     {"falcon_h1", state_space},
                                     {"jamba", state_space},
                                     {"zamba", state_space},
                                     {"zamba2", state_space},
                                     {"bamba", state_space},
                                     {"nemotron_h", state_space},
                                     {"granitemoehybrid", state_space},
                                     {"recurrent_gemma", "layers of a linear recurrence"},
                                     {"lfm2", "layers of short convolutions"},
                                     {"lfm2_moe", "layers of short convolutions"},
                                     {"gemma3n_text", "embeddings of each layer"},
                                     {"mllama_text_model", "layers of attention to images"},
                                     {"longformer", "attention to a pattern of tokens"},
                                     {"big_bird", "attention to a pattern of tokens"},
                                     {"mpt", "a bias of attention by distance"},
                                     {"mimo", "a block that predicts further tokens"},
                                     {"mimo_v2_flash", "heads of other widths in its windows"},
                                     {"nemotron-nas", "blocks of sizes of their own"},
                                     {"gemma4_text", "heads of other widths in its windows"},
                                     {"whisper", "sound"},
                                     {"clip", "towers of text and images"}};

// Parts of a model that cost time and are left out of the forecast.
struct LeftOut {
  const char* key;
  const char* what;
};

constexpr LeftOut left_out_keys[] = {
    {"attn_logit_softcapping", "a cap on the scores of attention"},
    {"final_logit_softcapping", "a cap on logits"},
    {"add_cross_attention", "attention to an encoder's output in each layer"},
    {"quantization_config",
     "weights of fewer bits: all are assumed to be of the run's precision, and trained"},
    {"attention_chunk_size", "attention within chunks: all tokens are assumed to be attended to"},
    {"no_rope_layers", "layers whose heads are not turned by positions: all are assumed to be"},
    {"position_embedding_type", "products with relative positions"},
    {"partial_rotary_factor", "partial rotary embedding; assumed: whole heads are rotated"},
    {"rotary_pct", "partial rotary embedding; assumed: whole heads are rotated"}};

bool has_no_part(const hjson::Value& value) {
  return value.kind == hjson::Kind::null ||
         (value.kind == hjson::Kind::boolean && !value.boolean) ||
         (value.kind == hjson::Kind::number && (value.number == 1 || value.number == 0)) ||
         (value.kind == hjson::Kind::string &&
          (value.text == "absolute" || value.text.starts_with("rope"))) ||
         (value.kind == hjson::Kind::array && value.items.empty());
}

// Returns whether two names differ in one letter. Files are written by programs, so a name that
// differs by more, in a digit, or by another letter at an end (gpt_neo), is another architecture.
bool is_slip_of(std::string_view name, std::string_view known) {
  const auto [shorter, longer] =
      std::minmax(name, known, [](auto a, auto b) { return a.size() < b.size(); });
  if (longer.size() == shorter.size() + 1 && !shorter.empty() &&
      ((longer.starts_with(shorter) && longer.back() != shorter.back()) ||
       (longer.ends_with(shorter) && longer.front() != shorter.front())))
    return false;
  while (!name.empty() && !known.empty() && name.front() == known.front())
    name.remove_prefix(1), known.remove_prefix(1);
  while (!name.empty() && !known.empty() && name.back() == known.back())
    name.remove_suffix(1), known.remove_suffix(1);
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return name.size() <= 1 && known.size() <= 1 && std::ranges::none_of(name, is_digit) &&
         std::ranges::none_of(known, is_digit);
}

const Architecture* find_architecture(std::string_view type) {
  const auto found = std::ranges::find(architectures, type, &Architecture::model_type);
  return found == std::end(architectures) ? nullptr : found;
}

const Architecture& architecture_of(ConfigReader& config) {
  const std::string type = config.word("model_type");
  if (const Architecture* known = find_architecture(type)) return *known;
  std::vector<std::string_view> names;
  for (const Architecture& architecture : architectures) names.push_back(architecture.model_type);
  const std::string all = fmt::format("{}", fmt::join(names, ", "));
  for (const Unmodelled& other : unmodelled)
    if (type == other.model_type)
      config.refuse("model_type", fmt::format("{} with {}", type, other.part), all);
  const auto meant =
      std::ranges::find_if(names, [&](std::string_view name) { return is_slip_of(type, name); });
  const std::string guess = meant == names.end() ? "" : fmt::format(", did you mean '{}'?", *meant);
  fail_input(config.where("model_type"), fmt::format("unknown architecture '{}'{}", type, guess),
             all);
}

// Throws Error for layers other than attention, and for other kinds of attention, which no family
// models.
void refuse_other_layers(ConfigReader& config) {
  const hjson::Value* types = config.find("layer_types");
  if (types == nullptr) return;
  for (const hjson::Value& type : types->items)
    if (!type.text.ends_with("_attention") || type.text == "linear_attention")
      config.refuse("layer_types", fmt::format("a layer of '{}'", type.text),
                    "full_attention, sliding_attention");
}

// Values of the class for keys that a file leaves out. Source: transformers 4.57,
// models/gemma3/configuration_gemma3.py (Gemma3TextConfig).
constexpr std::string_view gemma3_defaults =
    R"({"vocab_size": 262208, "hidden_size": 2304, "intermediate_size": 9216,
        "num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads": 4,
        "head_dim": 256, "max_position_embeddings": 131072, "sliding_window": 4096})";

// Default values of classes. Sources: transformers 4.57, models/llama, mistral, qwen2, gemma2.
struct Defaults {
  std::string_view model_type, values;
};
constexpr Defaults text_defaults[] = {
    {"gemma3_text", gemma3_defaults},
    {"llama", R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008,
        "num_hidden_layers": 32, "num_attention_heads": 32, "max_position_embeddings": 2048})"},
    {"mistral", R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
        "max_position_embeddings": 131072, "sliding_window": 4096})"},
    {"qwen2", R"({"vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
        "max_position_embeddings": 32768})"},
    {"gemma2", R"({"vocab_size": 256000, "hidden_size": 2304, "intermediate_size": 9216,
        "num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads": 4,
        "head_dim": 256, "max_position_embeddings": 8192, "sliding_window": 4096})"}};

// Adds the values that the file leaves out. Misspelt keys are still refused.
void add_defaults(hjson::Value& root, std::string_view values, const std::string& file) {
  const hjson::Value defaults = hjson::parse(values, file);
  ConfigReader config(root, file);
  std::vector<hjson::Member> missing;
  for (const hjson::Member& member : defaults.members)
    if (!config.has(member.key) && !config.is_null(member.key)) missing.push_back(member);
  config.refuse_misspelt();
  for (hjson::Member& member : missing) {
    member.line = 0;  // a default does not come from a line of the file
    root.members.push_back(std::move(member));
  }
}

// Returns the root of a file or, if it is multimodal, its `text_config` with the class's defaults
// for values that it leaves out.
hjson::Value text_model(std::string_view json, const std::string& file) {
  hjson::Value root = hjson::parse(json, file);
  const hjson::Value* text = root.find("text_config");
  const bool nested = text != nullptr && text->kind == hjson::Kind::object;
  if (nested) {
    hjson::Value inner = *text;
    for (const char* key :
         {"architectures", "tie_word_embeddings", "model_type", "quantization_config"})
      if (const hjson::Value* outer = root.find(key); outer != nullptr && !inner.find(key))
        inner.members.push_back({key, outer->line, *outer});
    root = std::move(inner);
  }
  const hjson::Value* named = root.find("model_type");
  const std::string type = named == nullptr ? "" : named->text;
  for (const Defaults& defaults : text_defaults)
    if (type == defaults.model_type && (nested || defaults.model_type == "gemma3_text"))
      add_defaults(root, defaults.values, file);
  return root;
}

// Returns a model name for a file: Llama-3-8B for "models/Llama-3-8B/config.json", mixtral for
// "mixtral.json".
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

// The keys of [model] that result from a config.json, and the effect of its keys.
struct Translated {
  std::string text;
  std::vector<LedgerEntry> ledger;
};

std::string_view part_left_out(std::string_view key) {
  const auto found = std::ranges::find(left_out_keys, key, &LeftOut::key);
  return found == std::end(left_out_keys) ? std::string_view() : found->what;
}

LedgerEntry entry_of(const hjson::Member& member, const ConfigReader& config) {
  LedgerEntry entry{member.key, member.line, Treatment::applied, {}};
  const std::string_view part = part_left_out(member.key), reason = costless_reason(member.key);
  if (has_no_part(member.value) && !config.was_asked(member.key)) {
    entry.treatment = Treatment::costless;
    entry.reason = reason.empty() ? "the run is without it" : reason;
  } else if (!part.empty() && !config.was_asked(member.key)) {
    entry.treatment = Treatment::named;
    entry.reason = fmt::format("not modelled: {}", part);
  } else if (!config.was_asked(member.key)) {
    entry.treatment = reason.empty() ? Treatment::named : Treatment::costless;
    entry.reason = reason.empty() ? "unknown key: not applied" : reason;
  }
  return entry;
}

// Returns the bits per weight of a model quantized by bitsandbytes (models/shape/adapters.h); 0 if
// the model is not quantized.
double quantized_bits(const hjson::Value& root) {
  const hjson::Value* how = root.find("quantization_config");
  if (how == nullptr || how->kind != hjson::Kind::object) return 0;
  const auto is_on = [&](const char* key) {
    const hjson::Value* value = how->find(key);
    return value != nullptr && value->kind == hjson::Kind::boolean && value->boolean;
  };
  if (is_on("load_in_8bit") || is_on("_load_in_8bit")) return 8;
  if (!is_on("load_in_4bit") && !is_on("_load_in_4bit")) return 0;
  return is_on("bnb_4bit_use_double_quant") ? 4 + 8.0 / 64 + 32.0 / (64 * 256) : 4 + 32.0 / 64;
}

Translated translate(std::string_view json, const std::string& file) {
  const hjson::Value root = text_model(json, file);
  refuse_other_file(root, file);
  ConfigReader config(root, file);
  const Architecture& architecture = architecture_of(config);
  refuse_other_layers(config);
  Description model;
  model.set("name", name_of_file(file));
  model.set("family", architecture.family);
  model.set("kind", "published");
  model.set("source", fmt::format("config.json of model_type {}", architecture.model_type));
  architecture.describe(config, model);
  describe_head(config, architecture.family, model);
  if (const double bits = quantized_bits(root); bits > 0) {
    config.find("quantization_config");
    model.set("quantized_bits", bits);
  }
  config.refuse_misspelt();
  Translated translated{model.text(), {}};
  for (const hjson::Member& member : root.members)
    if (member.line > 0) translated.ledger.push_back(entry_of(member, config));
  return translated;
}

// Adds the keys that a class looks up. The class reads a file that is empty at first, again and
// again. Each time, the key whose look-up fails is added to the file: as a number, or as a text if
// the number fails too.
void add_asked(const Architecture& architecture, std::set<std::string>& asked) {
  hjson::Value file, number, text;
  file.kind = hjson::Kind::object;
  number.kind = hjson::Kind::number;
  number.whole = 8;
  number.number = 8;
  text.kind = hjson::Kind::string;
  text.text = "gelu";
  const std::string name = architecture.model_type;
  for (bool fails = true; fails;) {
    ConfigReader config(file, name);
    Description model;
    try {
      architecture.describe(config, model);
      fails = false;
    } catch (const Error&) {
      const std::string& missing = config.asked().back();
      const hjson::Value* given = file.find(missing);
      fails = given == nullptr || given->kind == hjson::Kind::number;
      std::erase_if(file.members, [&](const auto& member) { return member.key == missing; });
      file.members.push_back({missing, 1, given == nullptr ? number : text});
    }
    asked.insert(config.asked().begin(), config.asked().end());
  }
}

// Returns sentences about parts of multimodal files other than the text model.
std::vector<std::string> other_parts(const hjson::Value& root, const std::string& file) {
  for (const char* key : {"text_config", "vision_config", "audio_config"})
    if (const hjson::Value* part = root.find(key); part != nullptr && !has_no_part(*part))
      return {describe({file, part->line, key},
                       "images and sound are not modelled: the forecast is of the text model")};
  return {};
}

}  // namespace

std::string description_of(std::string_view json, const std::string& file) {
  return translate(json, file).text;
}

// Keys outside text_config belong to other parts of the model, except those that both have.
std::vector<LedgerEntry> key_ledger(std::string_view json, const std::string& file) {
  std::vector<LedgerEntry> ledger = translate(json, file).ledger;
  const hjson::Value root = hjson::parse(json, file);
  const hjson::Value* text = root.find("text_config");
  if (text == nullptr || text->kind != hjson::Kind::object) return ledger;
  for (const hjson::Member& member : root.members) {
    const bool shared = std::ranges::any_of(ledger, [&](const LedgerEntry& entry) {
      return entry.key == member.key && entry.line == member.line;
    });
    if (shared) continue;
    LedgerEntry entry{member.key, member.line, Treatment::costless,
                      std::string(costless_reason(member.key))};
    if (member.key == "text_config")
      entry.treatment = Treatment::applied;
    else if (entry.reason.empty())
      entry = {member.key, member.line, Treatment::named, "of what is not text: not modelled"};
    ledger.push_back(std::move(entry));
  }
  return ledger;
}

KeysOfFormat keys_read() {
  KeysOfFormat keys;
  for (const Architecture& architecture : architectures) add_asked(architecture, keys.applied);
  for (const LeftOut& part : left_out_keys) keys.named.insert(part.key);
  keys.costless.assign(costless_groups().begin(), costless_groups().end());
  return keys;
}

std::vector<std::string> left_out(std::string_view json, const std::string& file) {
  std::vector<std::string> sentences = other_parts(hjson::parse(json, file), file), unknown;
  int line = 0;
  for (const LedgerEntry& entry : translate(json, file).ledger) {
    if (entry.treatment != Treatment::named || entry.key == "vision_config") continue;
    if (!part_left_out(entry.key).empty())
      sentences.push_back(describe({file, entry.line, entry.key}, entry.reason));
    else
      unknown.push_back(entry.key);
    if (unknown.size() == 1 && line == 0) line = entry.line;
  }
  if (!unknown.empty())
    sentences.push_back(
        describe({file, line, fmt::format("{}", fmt::join(unknown, ", "))},
                 unknown.size() > 1 ? "unknown keys: not applied" : "unknown key: not applied"));
  return sentences;
}

}  // namespace lambcast::huggingface
