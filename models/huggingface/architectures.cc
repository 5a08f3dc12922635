#include "models/huggingface/architectures.h"

#include <fmt/format.h>

#include <algorithm>

namespace lambcast::huggingface {
namespace {

// JSON files of a checkpoint that do not describe its architecture, by a key of each.
struct OtherFile {
  const char *key, *what, *instead;
};
constexpr OtherFile other_files[] = {
    {"peft_type", "belongs to an adapter (PEFT)",
     "the config.json of its base model, with --lora-rank"},
    {"dim", "belongs to a model in the format of its authors",
     "the config.json of the same model on Hugging Face"},
    {"weight_map", "belongs to the index of a checkpoint's files", "the config.json next to it"},
    {"_class_name", "belongs to a model of diffusers, none of which is modelled",
     "a model of text or ViT"},
    {"tokenizer_class", "belongs to a tokenizer", "the config.json next to it"},
    {"eos_token_id", "belongs to settings that generate text", "the config.json next to it"}};

}  // namespace

void Description::set(std::string_view key, std::int64_t value) {
  text_ += fmt::format("{} = {}\n", key, value);
}
void Description::set(std::string_view key, bool value) {
  text_ += fmt::format("{} = {}\n", key, value);
}
void Description::set(std::string_view key, double value) {
  text_ += fmt::format("{} = {:#}\n", key, value);
}
void Description::set(std::string_view key, std::string_view value) {
  text_ += fmt::format("{} = '{}'\n", key, value);
}

void Description::set_all(std::initializer_list<const char*> keys) {
  for (const char* key : keys) set(key, true);
}

// A run has sequences of max_position_embeddings, at most 4,096 tokens (config.h).
void add_lengths(ConfigReader& config, std::string_view key, Description& model) {
  constexpr std::int64_t most_default_length = 4096;
  const std::int64_t longest = config.whole(key, 1, 1 << 24);
  model.set("max_seq_len", longest);
  model.set("default_seq_len", std::min(longest, most_default_length));
}

Width add_decoder(ConfigReader& config, Description& model) {
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

void read_dropout(ConfigReader& config, std::initializer_list<const char*> keys,
                  Description& model) {
  double most = 0;
  for (const char* key : keys) most = std::max(most, config.share(key));
  model.set("dropout", most > 0);
}

void add_dense(ConfigReader& config, Description& model) {
  const Width width = add_decoder(config, model);
  if (!config.has("head_dim")) refuse_own_head_size(config, width);
  if (width.hidden != width.heads * width.head) model.set("head_dim", width.head);
  model.set("ffn", config.whole("intermediate_size", 1, most_ffn));
}

void read_truth(ConfigReader& config, std::string_view key, bool otherwise,
                std::initializer_list<const char*> keys, Description& model) {
  if (config.truth(key, otherwise)) model.set_all(keys);
}

void read_layer_types(ConfigReader& config, std::int64_t pattern, Description& model) {
  const auto window = config.optional_whole("sliding_window", 1, 1 << 24);
  std::int64_t layers = pattern, sliding = pattern - 1;
  if (const hjson::Value* types = config.find("layer_types")) {
    if (types->kind != hjson::Kind::array)
      config.refuse("layer_types", "other than a list", "a list");
    layers = static_cast<std::int64_t>(types->items.size());
    sliding = std::ranges::count_if(
        types->items, [](const hjson::Value& type) { return type.text == "sliding_attention"; });
    if (layers != config.whole("num_hidden_layers", 1, 10'000))
      fail_input(config.where("layer_types"),
                 fmt::format("lists {} layers, which is not num_hidden_layers", layers));
  }
  if (!window || sliding == 0) return;
  model.set("window", *window);
  model.set("window_every", layers);
  model.set("window_layers", sliding);
}

void read_window(ConfigReader& config, Description& model) {
  if (const auto window = config.optional_whole("sliding_window", 1, 1 << 24))
    model.set("window", *window);
}

void refuse_own_head_size(ConfigReader& config, const Width& width) {
  if (width.hidden != width.heads * width.head)
    config.refuse(config.has("head_dim") ? "head_dim" : "num_attention_heads",
                  fmt::format("attention of {} heads x {} does not match a hidden size of {}",
                              width.heads, width.head, width.hidden),
                  "heads that add up to it");
}

void refuse_biases(ConfigReader& config) {
  for (const char* key : {"attention_bias", "mlp_bias"})
    if (config.truth(key, false)) config.refuse(key, "a bias of matrices", "false");
}

void refuse_window(ConfigReader& config) {
  if (config.has("sliding_window") && config.truth("use_sliding_window", true))
    config.refuse("sliding_window", "attention within a window", "null");
}

void refuse_other_file(const hjson::Value& root, const std::string& file) {
  if (root.find("model_type") != nullptr || root.find("hidden_size") != nullptr) return;
  for (const OtherFile& other : other_files)
    if (const hjson::Value* key = root.find(other.key))
      fail_input({file, key->line, other.key}, other.what, other.instead);
}

}  // namespace lambcast::huggingface
