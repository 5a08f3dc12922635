// The architectures whose config.json is read (config.h), each a function that writes the keys of
// [model] (models/shape/families.h).
#pragma once

#include <string>
#include <string_view>

#include "models/huggingface/config_reader.h"

namespace lambcast::huggingface {

inline constexpr std::int64_t most_width = 1'000'000;
inline constexpr std::int64_t most_ffn = 10'000'000;

// The keys of [model], in TOML.
class Description {
 public:
  void set(std::string_view key, std::int64_t value);
  void set(std::string_view key, bool value);
  void set(std::string_view key, std::string_view value);  // of words without quotes, backslashes
  void set(std::string_view key, const char* value) { set(key, std::string_view(value)); }
  const std::string& text() const { return text_; }

 private:
  std::string text_ = "[model]\n";
};

struct Width {
  std::int64_t hidden = 0, heads = 0, head = 0;
};

// Adds the keys that decoders share: widths, layers, heads, vocabulary and lengths.
Width add_decoder(ConfigReader& config, Description& model);
void add_lengths(ConfigReader& config, std::string_view key, Description& model);
// sliding_window, of every layer.
void read_window(ConfigReader& config, Description& model);
void refuse_own_head_size(ConfigReader& config, const Width& width);
void refuse_biases(ConfigReader& config);
// A sliding_window that use_sliding_window turns on.
void refuse_window(ConfigReader& config);

// dense.cc
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

// sparse.cc
void describe_mixtral(ConfigReader& config, Description& model);
void describe_qwen3_moe(ConfigReader& config, Description& model);
void describe_deepseek_v3(ConfigReader& config, Description& model);
void describe_gpt_oss(ConfigReader& config, Description& model);

}  // namespace lambcast::huggingface
