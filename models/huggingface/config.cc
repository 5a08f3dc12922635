#include "models/huggingface/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "models/deepspeed/hjson.h"
#include "sim/base/error.h"

namespace lambcast::huggingface {
namespace {

using hjson::Kind;
using hjson::Value;

constexpr std::int64_t most_width = 1'000'000;
constexpr std::int64_t most_default_length = 4096;

// Reads keys of the file, remembers which, and knows where they stand.
class Config {
 public:
  Config(const Value& root, const std::string& file) : root_(root), file_(file) {}

  Where where(std::string_view key) const {
    const Value* value = root_.find(key);
    return {file_, value == nullptr ? 0 : value->line, std::string(key)};
  }

  // Null and absent are the same: transformers writes both.
  const Value* find(std::string_view key) {
    asked_.emplace_back(key);
    const Value* value = root_.find(key);
    return value == nullptr || value->kind == Kind::null ? nullptr : value;
  }

  std::int64_t whole(std::string_view key, std::int64_t low, std::int64_t high) {
    const auto value = optional_whole(key, low, high);
    if (!value) fail_missing(key);
    return *value;
  }

  std::optional<std::int64_t> optional_whole(std::string_view key, std::int64_t low,
                                             std::int64_t high) {
    const Value* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (value->kind != Kind::number || !value->whole || *value->whole < low || *value->whole > high)
      fail_input(where(key), fmt::format("{} is not a whole number in range", written(*value)),
                 fmt::format("{} to {}", low, high));
    return value->whole;
  }

  bool truth(std::string_view key, bool otherwise) {
    const Value* value = find(key);
    if (value == nullptr) return otherwise;
    if (value->kind != Kind::boolean)
      fail_input(where(key), fmt::format("{} is not true or false", written(*value)));
    return value->boolean;
  }

  double share(std::string_view key) {
    const Value* value = find(key);
    if (value == nullptr) return 0;
    if (value->kind != Kind::number || value->number < 0 || value->number > 1)
      fail_input(where(key), fmt::format("{} is not a share", written(*value)), "0 to 1");
    return value->number;
  }

  std::string word(std::string_view key) {
    const Value* value = find(key);
    if (value == nullptr) fail_missing(key);
    if (value->kind != Kind::string)
      fail_input(where(key), fmt::format("{} is no text", written(*value)));
    return value->text;
  }

  [[noreturn]] void refuse(std::string_view key, std::string_view what,
                           std::string_view allowed) const {
    fail_input(where(key), fmt::format("{} is not modelled", what), allowed);
  }

  // A key that is close to one that was asked for in vain is that one, misspelt.
  void refuse_misspelt() const {
    std::vector<std::string> absent;
    for (const std::string& key : asked_)
      if (root_.find(key) == nullptr) absent.push_back(key);
    for (const hjson::Member& member : root_.members) {
      if (std::find(asked_.begin(), asked_.end(), member.key) != asked_.end()) continue;
      if (const std::string meant = closest(member.key, absent); !meant.empty())
        fail_input({file_, member.line, member.key},
                   fmt::format("unknown key, did you mean '{}'?", meant));
    }
  }

 private:
  [[noreturn]] void fail_missing(std::string_view key) const {
    refuse_misspelt();
    fail_input({file_, 0, std::string(key)}, "is missing");
  }

  static std::string written(const Value& value) {
    if (value.kind == Kind::string) return fmt::format("the text '{}'", value.text);
    if (value.kind == Kind::number) return value.text;
    return std::string(name_of(value.kind));
  }

  const Value& root_;
  const std::string& file_;
  std::vector<std::string> asked_;
};

// The keys of [model], in TOML.
class Description {
 public:
  void set(std::string_view key, std::int64_t value) {
    text_ += fmt::format("{} = {}\n", key, value);
  }
  void set(std::string_view key, bool value) { text_ += fmt::format("{} = {}\n", key, value); }
  // Of words without quotes and backslashes.
  void set(std::string_view key, std::string_view value) {
    text_ += fmt::format("{} = '{}'\n", key, value);
  }
  void set(std::string_view key, const char* value) { set(key, std::string_view(value)); }
  const std::string& text() const { return text_; }

 private:
  std::string text_ = "[model]\n";
};

void add_lengths(Config& config, std::string_view key, Description& model) {
  const std::int64_t longest = config.whole(key, 1, 1 << 24);
  model.set("max_seq_len", longest);
  model.set("default_seq_len", std::min(longest, most_default_length));
}

struct Width {
  std::int64_t hidden = 0, heads = 0, head = 0;
};

// What llama and its descendants share.
Width add_decoder(Config& config, Description& model) {
  Width width;
  width.hidden = config.whole("hidden_size", 1, most_width);
  width.heads = config.whole("num_attention_heads", 1, 10'000);
  const auto keys = config.optional_whole("num_key_value_heads", 1, width.heads);
  width.head = config.optional_whole("head_dim", 1, 10'000).value_or(width.hidden / width.heads);
  if (keys && width.heads % *keys != 0)
    fail_input(config.where("num_key_value_heads"),
               fmt::format("{} heads are not divisible by {}", width.heads, *keys));
  model.set("layers", config.whole("num_hidden_layers", 1, 10'000));
  model.set("hidden", width.hidden);
  model.set("heads", width.heads);
  if (keys) model.set("kv_heads", *keys);
  model.set("vocab", config.whole("vocab_size", 1, 10'000'000));
  add_lengths(config, "max_position_embeddings", model);
  model.set("flash_attention", true);
  return width;
}

void refuse_own_head_size(Config& config, const Width& width) {
  if (width.hidden != width.heads * width.head)
    config.refuse(config.find("head_dim") ? "head_dim" : "num_attention_heads",
                  fmt::format("attention of {} heads x {} beside a hidden size of {}", width.heads,
                              width.head, width.hidden),
                  "heads that add up to it");
}

void refuse_biases(Config& config) {
  for (const char* key : {"attention_bias", "mlp_bias"})
    if (config.truth(key, false)) config.refuse(key, "a bias of matrices", "false");
}

void read_window(Config& config, Description& model) {
  if (const auto window = config.optional_whole("sliding_window", 1, 1 << 24))
    model.set("window", *window);
}

void refuse_window(Config& config) {
  if (config.find("sliding_window") != nullptr && config.truth("use_sliding_window", true))
    config.refuse("sliding_window", "attention within a window", "null");
}

void refuse_tied_head(Config& config) {
  if (config.truth("tie_word_embeddings", false))
    config.refuse("tie_word_embeddings", "a head tied to the embedding of this architecture",
                  "false");
}

void add_experts(Config& config, std::string_view key, Description& model) {
  const std::int64_t experts = config.whole(key, 1, 4096);
  model.set("experts", experts);
  model.set("experts_per_token", config.whole("num_experts_per_tok", 1, experts));
}

void describe_llama(Config& config, Description& model) {
  refuse_own_head_size(config, add_decoder(config, model));
  refuse_biases(config);
  model.set("ffn", config.whole("intermediate_size", 1, 10'000'000));
  if (config.truth("tie_word_embeddings", false)) model.set("tied_head", true);
}

void describe_mistral(Config& config, Description& model) {
  describe_llama(config, model);
  read_window(config, model);
}

void describe_mixtral(Config& config, Description& model) {
  refuse_own_head_size(config, add_decoder(config, model));
  read_window(config, model);
  refuse_tied_head(config);
  model.set("ffn", config.whole("intermediate_size", 1, 10'000'000));
  add_experts(config, "num_local_experts", model);
}

void describe_qwen3_moe(Config& config, Description& model) {
  model.set("head_dim", add_decoder(config, model).head);
  refuse_biases(config);
  refuse_tied_head(config);
  if (config.truth("use_sliding_window", false)) refuse_window(config);
  if (config.optional_whole("decoder_sparse_step", 1, 10'000).value_or(1) != 1)
    config.refuse("decoder_sparse_step", "layers without experts between those that have them",
                  "1");
  if (const Value* dense = config.find("mlp_only_layers");
      dense != nullptr && !dense->items.empty())
    config.refuse("mlp_only_layers", "a list of layers without experts", "[]");
  model.set("qk_norm", true);
  model.set("ffn", config.whole("moe_intermediate_size", 1, 10'000'000));
  add_experts(config, "num_experts", model);
}

void describe_deepseek_v3(Config& config, Description& model) {
  config.find("head_dim");  // heads are of the latent attention's sizes
  add_decoder(config, model);
  refuse_tied_head(config);
  if (config.optional_whole("moe_layer_freq", 1, 10'000).value_or(1) != 1)
    config.refuse("moe_layer_freq", "layers without experts between those that have them", "1");
  model.set("head_dim", config.whole("qk_nope_head_dim", 1, 10'000));
  model.set("rope_dim", config.whole("qk_rope_head_dim", 1, 10'000));
  model.set("value_dim", config.whole("v_head_dim", 1, 10'000));
  model.set("query_rank", config.whole("q_lora_rank", 1, most_width));
  model.set("key_rank", config.whole("kv_lora_rank", 1, most_width));
  const std::int64_t ffn = config.whole("moe_intermediate_size", 1, 1'000'000);
  model.set("ffn", ffn);
  add_experts(config, "n_routed_experts", model);
  if (const auto shared = config.optional_whole("n_shared_experts", 0, 10); shared.value_or(0) > 0)
    model.set("shared_ffn", *shared * ffn);
  if (const auto dense = config.optional_whole("first_k_dense_replace", 0, 10'000);
      dense.value_or(0) > 0) {
    model.set("dense_layers", *dense);
    model.set("dense_ffn", config.whole("intermediate_size", 1, 10'000'000));
  }
  if (const auto depth = config.optional_whole("num_nextn_predict_layers", 0, 16);
      depth.value_or(0) > 0)
    model.set("predicted_layers", *depth);
}

void describe_gpt_oss(Config& config, Description& model) {
  model.set("head_dim", add_decoder(config, model).head);
  refuse_tied_head(config);
  model.set("biases", config.truth("attention_bias", true));
  read_window(config, model);
  model.set("window_every", std::int64_t{2});
  model.set("ffn", config.whole("intermediate_size", 1, 10'000'000));
  add_experts(config, "num_local_experts", model);
}

void describe_gpt2(Config& config, Description& model) {
  const std::int64_t hidden = config.whole("n_embd", 1, most_width);
  const std::int64_t heads = config.whole("n_head", 1, 10'000);
  if (hidden % heads != 0)
    fail_input(config.where("n_head"),
               fmt::format("n_embd {} is not divisible by {} heads", hidden, heads));
  model.set("layers", config.whole("n_layer", 1, 10'000));
  model.set("hidden", hidden);
  model.set("heads", heads);
  model.set("ffn", config.optional_whole("n_inner", 1, 10'000'000).value_or(4 * hidden));
  model.set("vocab", config.whole("vocab_size", 1, 10'000'000));
  add_lengths(config, "n_positions", model);
  double dropout = 0;
  for (const char* key : {"attn_pdrop", "embd_pdrop", "resid_pdrop"})
    dropout = std::max(dropout, config.share(key));
  model.set("dropout", dropout > 0);
}

void describe_bert(Config& config, Description& model) {
  const std::int64_t hidden = config.whole("hidden_size", 1, most_width);
  const std::int64_t heads = config.whole("num_attention_heads", 1, 10'000);
  if (hidden % heads != 0)
    fail_input(config.where("num_attention_heads"),
               fmt::format("hidden_size {} is not divisible by {} heads", hidden, heads));
  model.set("layers", config.whole("num_hidden_layers", 1, 10'000));
  model.set("hidden", hidden);
  model.set("heads", heads);
  model.set("ffn", config.whole("intermediate_size", 1, 10'000'000));
  model.set("vocab", config.whole("vocab_size", 1, 10'000'000));
  model.set("type_vocab", config.optional_whole("type_vocab_size", 1, 1000).value_or(2));
  add_lengths(config, "max_position_embeddings", model);
  model.set("pre_layer_norm", false);
  const double dropout =
      std::max(config.share("hidden_dropout_prob"), config.share("attention_probs_dropout_prob"));
  model.set("dropout", dropout > 0);
}

struct Architecture {
  const char* model_type;
  const char* family;
  void (*describe)(Config&, Description&);
};

constexpr Architecture architectures[] = {{"llama", "llama", describe_llama},
                                          {"mistral", "llama", describe_mistral},
                                          {"mixtral", "moe-llama", describe_mixtral},
                                          {"qwen3_moe", "moe", describe_qwen3_moe},
                                          {"deepseek_v3", "moe", describe_deepseek_v3},
                                          {"gpt_oss", "moe", describe_gpt_oss},
                                          {"gpt2", "gpt", describe_gpt2},
                                          {"bert", "bert", describe_bert}};

const Architecture& architecture_of(Config& config) {
  const std::string type = config.word("model_type");
  std::vector<std::string> known;
  for (const Architecture& architecture : architectures) {
    if (type == architecture.model_type) return architecture;
    known.emplace_back(architecture.model_type);
  }
  fail_unknown(config.where("model_type"), "architecture", type, known);
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
  const Value root = hjson::parse(json, file);
  Config config(root, file);
  const Architecture& architecture = architecture_of(config);
  Description model;
  model.set("name", name_of_file(file));
  model.set("family", architecture.family);
  model.set("kind", "published");
  model.set("source", fmt::format("config.json of model_type {}", architecture.model_type));
  architecture.describe(config, model);
  config.refuse_misspelt();
  return model.text();
}

}  // namespace lambcast::huggingface
