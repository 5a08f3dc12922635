#include <fmt/format.h>

#include "models/huggingface/architectures.h"

namespace lambcast::huggingface {
namespace {

// Whether a class ties its head to the embedding by default.
constexpr bool tied = true;
constexpr bool untied = false;

void read_tied(ConfigReader& config, bool otherwise, Description& model) {
  if (config.truth("tie_word_embeddings", otherwise)) model.set("tied_head", true);
}

void read_attention_bias(ConfigReader& config, Description& model) {
  read_truth(config, "attention_bias", false, {"qkv_bias", "projection_bias"}, model);
}

}  // namespace

void describe_llama(ConfigReader& config, Description& model) {
  add_dense(config, model);
  read_attention_bias(config, model);
  if (config.truth("mlp_bias", false)) model.set("ffn_bias", true);
  read_tied(config, untied, model);
}

void describe_mistral(ConfigReader& config, Description& model) {
  describe_llama(config, model);
  read_window(config, model);
}

void describe_qwen2(ConfigReader& config, Description& model) {
  add_dense(config, model);
  model.set("qkv_bias", true);
  if (config.truth("use_sliding_window", false)) refuse_window(config);
  read_tied(config, untied, model);
}

void describe_qwen3(ConfigReader& config, Description& model) {
  add_dense(config, model);
  read_attention_bias(config, model);
  model.set("qk_norm", true);
  if (config.truth("use_sliding_window", false)) refuse_window(config);
  read_tied(config, untied, model);
}

void describe_gemma(ConfigReader& config, Description& model) {
  add_dense(config, model);
  read_attention_bias(config, model);
  read_tied(config, tied, model);
}

void describe_gemma2(ConfigReader& config, Description& model) {
  describe_gemma(config, model);
  model.set("norms", std::int64_t{4});
  read_layer_types(config, 2, model);
}

void describe_gemma3(ConfigReader& config, Description& model) {
  describe_gemma(config, model);
  model.set("norms", std::int64_t{4});
  model.set("qk_norm", true);
  read_layer_types(config, config.optional_whole("sliding_window_pattern", 1, 10'000).value_or(6),
                   model);
}

void describe_phi(ConfigReader& config, Description& model) {
  add_dense(config, model);
  if (config.truth("qk_layernorm", false))
    config.refuse("qk_layernorm", "a norm of queries and keys with a bias", "false");
  model.set_all({"parallel_block", "qkv_bias", "projection_bias", "ffn_bias", "norm_bias"});
  model.set("gated", false);
  if (config.truth("tie_word_embeddings", untied))
    config.refuse("tie_word_embeddings", "a head tied to the embedding of this architecture",
                  "false");
  model.set("head_bias", true);
  read_dropout(config, {"attention_dropout", "embd_pdrop", "resid_pdrop"}, model);
}

void describe_phi3(ConfigReader& config, Description& model) {
  add_dense(config, model);
  model.set("joined", true);
  read_window(config, model);
  read_tied(config, untied, model);
  read_dropout(config, {"attention_dropout", "embd_pdrop", "resid_pdrop"}, model);
}

void describe_olmo2(ConfigReader& config, Description& model) {
  add_dense(config, model);
  read_attention_bias(config, model);
  model.set_all({"qk_norm", "qk_norm_whole"});
  read_layer_types(config, 1, model);
  read_tied(config, untied, model);
}

void describe_starcoder2(ConfigReader& config, Description& model) {
  add_dense(config, model);
  model.set("gated", false);
  model.set("norm_bias", true);
  if (config.truth("use_bias", true)) model.set_all({"qkv_bias", "projection_bias", "ffn_bias"});
  read_window(config, model);
  read_tied(config, tied, model);
  read_dropout(config, {"attention_dropout", "embedding_dropout", "residual_dropout"}, model);
}

void describe_gpt_neox(ConfigReader& config, Description& model) {
  add_dense(config, model);
  model.set_all({"joined", "ffn_bias", "norm_bias"});
  model.set("gated", false);
  if (config.truth("attention_bias", true)) model.set_all({"qkv_bias", "projection_bias"});
  if (config.truth("use_parallel_residual", true)) model.set("parallel_block", true);
  model.set("norms", std::int64_t{2});
  read_tied(config, untied, model);
  read_dropout(config, {"attention_dropout", "hidden_dropout"}, model);
}

void describe_opt(ConfigReader& config, Description& model) {
  const Width width = add_decoder(config, model);
  refuse_own_head_size(config, width);
  if (config.optional_whole("word_embed_proj_dim", 1, most_width).value_or(width.hidden) !=
      width.hidden)
    config.refuse("word_embed_proj_dim", "an embedding of another width than the blocks",
                  fmt::format("{}", width.hidden));
  if (!config.truth("do_layer_norm_before", true))
    config.refuse("do_layer_norm_before", "a decoder with its norms behind each residual", "true");
  model.set("ffn", config.whole("ffn_dim", 1, most_ffn));
  model.set("gated", false);
  model.set("norm_bias", true);
  if (config.truth("enable_bias", true)) model.set_all({"qkv_bias", "projection_bias", "ffn_bias"});
  // The table of positions has two rows of padding.
  model.set("positions", config.whole("max_position_embeddings", 1, 1 << 24) + 2);
  read_tied(config, tied, model);
  read_dropout(config, {"attention_dropout", "dropout"}, model);
}

void describe_falcon(ConfigReader& config, Description& model) {
  const std::int64_t hidden = config.whole("hidden_size", 1, most_width);
  const std::int64_t heads = config.whole("num_attention_heads", 1, 10'000);
  if (hidden % heads != 0)
    fail_input(config.where("num_attention_heads"),
               fmt::format("hidden_size {} is not divisible by {} heads", hidden, heads));
  if (config.truth("alibi", false))
    config.refuse("alibi", "a bias of attention by distance", "false");
  const bool grouped = config.truth("new_decoder_architecture", false);
  const bool one_key = config.truth("multi_query", true);
  const auto keys = config.optional_whole("num_kv_heads", 1, heads);
  const bool beside = grouped || config.truth("parallel_attn", true);
  model.set("layers", config.whole("num_hidden_layers", 1, 10'000));
  model.set("hidden", hidden);
  model.set("heads", heads);
  model.set("kv_heads", grouped ? keys.value_or(heads) : one_key ? 1 : heads);
  model.set("ffn", config.optional_whole("ffn_hidden_size", 1, most_ffn).value_or(4 * hidden));
  model.set("vocab", config.whole("vocab_size", 1, 10'000'000));
  const std::int64_t longest =
      config.optional_whole("max_position_embeddings", 1, 1 << 24).value_or(2048);
  model.set("max_seq_len", longest);
  model.set("flash_attention", true);
  model.set("gated", false);
  model.set_all({"joined", "norm_bias"});
  if (config.truth("bias", false)) model.set_all({"qkv_bias", "projection_bias", "ffn_bias"});
  if (beside) model.set("parallel_block", true);
  const std::int64_t usual_norms = grouped || !beside ? 2 : 1;
  model.set("norms",
            beside ? config.optional_whole("num_ln_in_parallel_attn", 1, 2).value_or(usual_norms)
                   : usual_norms);
  read_tied(config, tied, model);
  read_dropout(config, {"attention_dropout", "hidden_dropout"}, model);
}

void describe_smollm3(ConfigReader& config, Description& model) {
  add_dense(config, model);
  read_attention_bias(config, model);
  if (config.truth("mlp_bias", false)) model.set("ffn_bias", true);
  if (config.truth("use_sliding_window", false)) refuse_window(config);
  read_tied(config, tied, model);
}

void describe_cohere(ConfigReader& config, Description& model) {
  add_dense(config, model);
  read_attention_bias(config, model);
  if (config.truth("use_qk_norm", false))
    config.refuse("use_qk_norm", "a norm of queries and keys with weights of each head", "false");
  model.set("parallel_block", true);
  read_tied(config, tied, model);
}

void describe_gpt2(ConfigReader& config, Description& model) {
  const std::int64_t hidden = config.whole("n_embd", 1, most_width);
  const std::int64_t heads = config.whole("n_head", 1, 10'000);
  if (hidden % heads != 0)
    fail_input(config.where("n_head"),
               fmt::format("n_embd {} is not divisible by {} heads", hidden, heads));
  model.set("layers", config.whole("n_layer", 1, 10'000));
  model.set("hidden", hidden);
  model.set("heads", heads);
  model.set("ffn", config.optional_whole("n_inner", 1, most_ffn).value_or(4 * hidden));
  model.set("vocab", config.whole("vocab_size", 1, 10'000'000));
  add_lengths(config, "n_positions", model);
  read_dropout(config, {"attn_pdrop", "embd_pdrop", "resid_pdrop"}, model);
}

void describe_bert(ConfigReader& config, Description& model) {
  const std::int64_t hidden = config.whole("hidden_size", 1, most_width);
  const std::int64_t heads = config.whole("num_attention_heads", 1, 10'000);
  if (hidden % heads != 0)
    fail_input(config.where("num_attention_heads"),
               fmt::format("hidden_size {} is not divisible by {} heads", hidden, heads));
  model.set("layers", config.whole("num_hidden_layers", 1, 10'000));
  model.set("hidden", hidden);
  model.set("heads", heads);
  model.set("ffn", config.whole("intermediate_size", 1, most_ffn));
  model.set("vocab", config.whole("vocab_size", 1, 10'000'000));
  model.set("type_vocab", config.optional_whole("type_vocab_size", 1, 1000).value_or(2));
  add_lengths(config, "max_position_embeddings", model);
  model.set("pre_layer_norm", false);
  read_dropout(config, {"hidden_dropout_prob", "attention_probs_dropout_prob"}, model);
}

}  // namespace lambcast::huggingface
