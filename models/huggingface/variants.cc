// Dense decoders that differ from Llama's in biases, norms, activations or windows.
// Source: transformers 4.57, models/*/configuration_*.py and modeling_*.py.
#include <fmt/format.h>

#include "models/huggingface/architectures.h"

namespace lambcast::huggingface {
namespace {

void read_tied_head(ConfigReader& config, bool otherwise, Description& model) {
  read_truth(config, "tie_word_embeddings", otherwise, {"tied_head"}, model);
}

// Reads whether attention and feed-forward have biases.
void read_both_biases(ConfigReader& config, Description& model) {
  read_truth(config, "attention_bias", false, {"qkv_bias", "projection_bias"}, model);
  read_truth(config, "mlp_bias", false, {"ffn_bias"}, model);
}

// Adds the widths of a decoder whose file uses GPT-2's key names. Returns the number of heads.
std::int64_t add_gpt_names(ConfigReader& config, const char* width, Description& model) {
  const std::int64_t hidden = config.whole(width, 1, most_width);
  // transformers also reads these values from keys with its common names (attribute_map).
  const char* head_key = config.has("num_attention_heads") ? "num_attention_heads" : "n_head";
  const std::int64_t heads = config.whole(head_key, 1, 10'000);
  if (hidden % heads != 0)
    fail_input(config.where(head_key),
               fmt::format("{} {} is not divisible by {} heads", width, hidden, heads));
  model.set(
      "layers",
      config.whole(config.has("num_hidden_layers") ? "num_hidden_layers" : "n_layer", 1, 10'000));
  model.set("hidden", hidden);
  model.set("heads", heads);
  model.set("ffn", config.optional_whole("n_inner", 1, most_ffn).value_or(4 * hidden));
  model.set("vocab", config.whole("vocab_size", 1, 10'000'000));
  model.set("gated", false);
  model.set_all({"joined", "norm_bias", "qkv_bias", "projection_bias", "ffn_bias"});
  read_tied_head(config, true, model);
  return heads;
}

}  // namespace

void describe_seed_oss(ConfigReader& config, Description& model) {
  add_dense(config, model);
  read_truth(config, "attention_bias", true, {"qkv_bias"}, model);
  read_truth(config, "attention_out_bias", false, {"projection_bias"}, model);
  read_truth(config, "mlp_bias", false, {"ffn_bias"}, model);
  read_tied_head(config, false, model);
}

void describe_internlm2(ConfigReader& config, Description& model) {
  add_dense(config, model);
  read_truth(config, "bias", true, {"qkv_bias", "projection_bias"}, model);
  read_tied_head(config, false, model);
}

void describe_glm4(ConfigReader& config, Description& model) {
  add_dense(config, model);
  if (config.word("model_type") == "glm4") model.set("norms", std::int64_t{4});
  model.set("joined", true);
  read_truth(config, "attention_bias", false, {"qkv_bias"}, model);
  read_tied_head(config, false, model);
}

void describe_nemotron(ConfigReader& config, Description& model) {
  add_dense(config, model);
  model.set("gated", false);
  model.set("norm_bias", true);
  read_both_biases(config, model);
  read_tied_head(config, false, model);
}

void describe_stablelm(ConfigReader& config, Description& model) {
  add_dense(config, model);
  if (config.truth("qk_layernorm", false))
    config.refuse("qk_layernorm", "a norm of queries and keys with weights of each head", "false");
  model.set("norm_bias", true);
  read_truth(config, "use_qkv_bias", false, {"qkv_bias"}, model);
  read_truth(config, "use_parallel_residual", false, {"parallel_block"}, model);
  read_tied_head(config, false, model);
}

void describe_exaone4(ConfigReader& config, Description& model) {
  add_dense(config, model);
  model.set("qk_norm", true);
  read_layer_types(config, 1, model);
  read_tied_head(config, false, model);
}

void describe_ernie4_5(ConfigReader& config, Description& model) {
  add_dense(config, model);
  read_truth(config, "use_bias", false, {"qkv_bias", "projection_bias", "ffn_bias"}, model);
  read_tied_head(config, true, model);
}

void describe_arcee(ConfigReader& config, Description& model) {
  add_dense(config, model);
  model.set("gated", false);
  read_both_biases(config, model);
  read_tied_head(config, false, model);
}

void describe_apertus(ConfigReader& config, Description& model) {
  describe_arcee(config, model);
  read_truth(config, "qk_norm", true, {"qk_norm"}, model);
}

void describe_cohere2(ConfigReader& config, Description& model) {
  add_dense(config, model);
  read_truth(config, "attention_bias", false, {"qkv_bias", "projection_bias"}, model);
  model.set("parallel_block", true);
  read_layer_types(config, config.optional_whole("sliding_window_pattern", 1, 10'000).value_or(4),
                   model);
  read_tied_head(config, true, model);
}

// BLOOM adds a bias by distance to its scores, for which transformers has no fused kernel.
void describe_bloom(ConfigReader& config, Description& model) {
  add_gpt_names(config, config.has("n_embed") ? "n_embed" : "hidden_size", model);
  model.set("max_seq_len", config.optional_whole("seq_length", 1, 1 << 24).value_or(2048));
  model.set("flash_attention", false);
  read_dropout(config, {"hidden_dropout", "attention_dropout"}, model);
}

void describe_gpt_bigcode(ConfigReader& config, Description& model) {
  const std::int64_t heads = add_gpt_names(config, "n_embd", model);
  model.set("kv_heads", config.truth("multi_query", true) ? 1 : heads);
  add_lengths(config, "n_positions", model);
  model.set("positions", config.whole("n_positions", 1, 1 << 24));
  model.set("flash_attention", true);
  read_dropout(config, {"attn_pdrop", "embd_pdrop", "resid_pdrop"}, model);
}

// Every third layer attends to all tokens, the others to `local_attention` tokens around each
// token.
void describe_modernbert(ConfigReader& config, Description& model) {
  add_dense(config, model);
  model.set("causal", false);
  model.set_all({"joined", "tied_head"});
  read_truth(config, "attention_bias", false, {"qkv_bias", "projection_bias"}, model);
  read_truth(config, "mlp_bias", false, {"ffn_bias"}, model);
  const auto every = config.optional_whole("global_attn_every_n_layers", 1, 10'000).value_or(3);
  if (every > 1) {
    model.set("window", config.optional_whole("local_attention", 1, 1 << 24).value_or(128));
    model.set("window_every", every);
    model.set("window_layers", every - 1);
  }
  read_dropout(config, {"attention_dropout", "embedding_dropout", "mlp_dropout"}, model);
}

}  // namespace lambcast::huggingface
