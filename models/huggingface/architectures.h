// The architectures whose config.json is read (config.h). Each is a function that writes the keys
// of [model] (models/shape/families.h).
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "models/huggingface/config_reader.h"

namespace lambcast::huggingface {

inline constexpr std::int64_t most_width = 1'000'000;
inline constexpr std::int64_t most_ffn = 10'000'000;

// Builds the keys of [model], in TOML.
class Description {
 public:
  void set(std::string_view key, std::int64_t value);
  void set(std::string_view key, bool value);
  void set(std::string_view key, double value);
  void set(std::string_view key,
           std::string_view value);  // `value` has neither quotes nor backslashes
  void set(std::string_view key, const char* value) { set(key, std::string_view(value)); }
  void set_all(std::initializer_list<const char*> keys);  // sets them to true
  const std::string& text() const { return text_; }

 private:
  std::string text_ = "[model]\n";
};

struct Width {
  std::int64_t hidden = 0, heads = 0, head = 0;
};

// Throws Error for a JSON file of a checkpoint that does not describe its architecture.
void refuse_other_file(const hjson::Value& root, const std::string& file);

// Adds the keys that decoders share: widths, layers, heads, vocabulary and lengths.
Width add_decoder(ConfigReader& config, Description& model);
void add_lengths(ConfigReader& config, std::string_view key, Description& model);
// Adds the same keys as add_decoder, and those of the feed-forward and of a separate head size.
void add_dense(ConfigReader& config, Description& model);
// Reads `layer_types`, which names each layer's attention. Without it every `pattern`-th layer
// attends to all tokens.
void read_layer_types(ConfigReader& config, std::int64_t pattern, Description& model);
// Reads sliding_window, which applies to every layer.
void read_window(ConfigReader& config, Description& model);
void refuse_own_head_size(ConfigReader& config, const Width& width);
void refuse_biases(ConfigReader& config);
// Refuses a sliding_window that use_sliding_window enables.
void refuse_window(ConfigReader& config);

// These functions are defined in dense.cc:
void describe_llama(ConfigReader& config, Description& model);
void describe_mistral(ConfigReader& config, Description& model);
void describe_qwen2(ConfigReader& config, Description& model);
void describe_qwen3(ConfigReader& config, Description& model);
void describe_gemma(ConfigReader& config, Description& model);
void describe_gemma2(ConfigReader& config, Description& model);
void describe_gemma3(ConfigReader& config, Description& model);
void describe_phi(ConfigReader& config, Description& model);
void describe_phi3(ConfigReader& config, Description& model);
void describe_olmo2(ConfigReader& config, Description& model);
void describe_starcoder2(ConfigReader& config, Description& model);
void describe_gpt_neox(ConfigReader& config, Description& model);
void describe_opt(ConfigReader& config, Description& model);
void describe_falcon(ConfigReader& config, Description& model);
void describe_smollm3(ConfigReader& config, Description& model);
void describe_cohere(ConfigReader& config, Description& model);
void describe_gpt2(ConfigReader& config, Description& model);
void describe_bert(ConfigReader& config, Description& model);

// These functions are defined in variants.cc:
void describe_seed_oss(ConfigReader& config, Description& model);
void describe_internlm2(ConfigReader& config, Description& model);
void describe_glm4(ConfigReader& config, Description& model);
void describe_nemotron(ConfigReader& config, Description& model);
void describe_stablelm(ConfigReader& config, Description& model);
void describe_exaone4(ConfigReader& config, Description& model);
void describe_ernie4_5(ConfigReader& config, Description& model);
void describe_arcee(ConfigReader& config, Description& model);
void describe_apertus(ConfigReader& config, Description& model);
void describe_cohere2(ConfigReader& config, Description& model);
void describe_bloom(ConfigReader& config, Description& model);
void describe_gpt_bigcode(ConfigReader& config, Description& model);
void describe_modernbert(ConfigReader& config, Description& model);

// These functions are defined in encoders.cc:
void describe_roberta(ConfigReader& config, Description& model);
void describe_electra(ConfigReader& config, Description& model);
void describe_albert(ConfigReader& config, Description& model);
void describe_deberta(ConfigReader& config, Description& model);
void describe_distilbert(ConfigReader& config, Description& model);
void describe_t5(ConfigReader& config, Description& model);
void describe_bart(ConfigReader& config, Description& model);
void describe_vit(ConfigReader& config, Description& model);

// These functions are defined in sparse.cc:
void describe_qwen2_moe(ConfigReader& config, Description& model);
void describe_olmoe(ConfigReader& config, Description& model);
void describe_phimoe(ConfigReader& config, Description& model);
void describe_glm4_moe(ConfigReader& config, Description& model);
void describe_minimax_m2(ConfigReader& config, Description& model);
void describe_llama4(ConfigReader& config, Description& model);
void describe_ernie4_5_moe(ConfigReader& config, Description& model);
void describe_granitemoe(ConfigReader& config, Description& model);
void describe_mixtral(ConfigReader& config, Description& model);
void describe_qwen3_moe(ConfigReader& config, Description& model);
void describe_deepseek_v3(ConfigReader& config, Description& model);
void describe_gpt_oss(ConfigReader& config, Description& model);

// Sets `keys` of the model if the file's `key` is true. If it is absent, `otherwise` applies.
void read_truth(ConfigReader& config, std::string_view key, bool otherwise,
                std::initializer_list<const char*> keys, Description& model);
// Sets `dropout` of the model if any of these dropout probabilities is above zero.
void read_dropout(ConfigReader& config, std::initializer_list<const char*> keys,
                  Description& model);

}  // namespace lambcast::huggingface
