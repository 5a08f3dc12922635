#include "models/huggingface/architectures.h"

namespace lambcast::huggingface {
namespace {

void refuse_tied_head(ConfigReader& config) {
  if (config.truth("tie_word_embeddings", false))
    config.refuse("tie_word_embeddings", "a head tied to the embedding of this architecture",
                  "false");
}

void add_experts(ConfigReader& config, std::string_view key, Description& model) {
  const std::int64_t experts = config.whole(key, 1, 4096);
  model.set("experts", experts);
  model.set("experts_per_token", config.whole("num_experts_per_tok", 1, experts));
}

// Adds grouped attention with a separate head size, and a head that is the embedding if `tied`.
void add_sparse(ConfigReader& config, bool tied, Description& model) {
  model.set("head_dim", add_decoder(config, model).head);
  read_truth(config, "tie_word_embeddings", tied, {"tied_head"}, model);
}

// Adds the experts that every token visits, each as wide as a routed expert, and the first layers,
// which are dense.
void add_shared(ConfigReader& config, const char* shared, const char* dense, std::int64_t ffn,
                Description& model) {
  if (const auto count = config.optional_whole(shared, 0, 10); count.value_or(0) > 0)
    model.set("shared_ffn", *count * ffn);
  if (const auto layers = config.optional_whole(dense, 0, 10'000); layers.value_or(0) > 0) {
    model.set("dense_layers", *layers);
    model.set("dense_ffn", config.whole("intermediate_size", 1, most_ffn));
  }
}

void read_step(ConfigReader& config, const char* key, const char* dense, Description& model) {
  const auto step = config.optional_whole(key, 1, 10'000).value_or(1);
  if (step == 1) return;
  model.set("sparse_every", step);
  model.set("dense_ffn", config.whole(dense, 1, most_ffn));
}

// Adds the blocks that predict further tokens (multi-token prediction).
void add_predicted(ConfigReader& config, Description& model) {
  if (const auto depth = config.optional_whole("num_nextn_predict_layers", 0, 16);
      depth.value_or(0) > 0)
    model.set("predicted_layers", *depth);
}

void refuse_dense_list(ConfigReader& config) {
  if (const hjson::Value* dense = config.find("mlp_only_layers");
      dense != nullptr && !dense->items.empty())
    config.refuse("mlp_only_layers", "a list of layers without experts", "[]");
}

}  // namespace

void describe_mixtral(ConfigReader& config, Description& model) {
  refuse_own_head_size(config, add_decoder(config, model));
  read_window(config, model);
  refuse_tied_head(config);
  model.set("ffn", config.whole("intermediate_size", 1, most_ffn));
  add_experts(config, "num_local_experts", model);
}

void describe_qwen3_moe(ConfigReader& config, Description& model) {
  add_sparse(config, false, model);
  refuse_biases(config);
  if (config.truth("use_sliding_window", false)) refuse_window(config);
  read_step(config, "decoder_sparse_step", "intermediate_size", model);
  refuse_dense_list(config);
  model.set("qk_norm", true);
  model.set("ffn", config.whole("moe_intermediate_size", 1, most_ffn));
  add_experts(config, "num_experts", model);
}

// The gate of the shared experts, one row, is left out.
void describe_qwen2_moe(ConfigReader& config, Description& model) {
  add_sparse(config, false, model);
  if (config.truth("use_sliding_window", false)) refuse_window(config);
  read_step(config, "decoder_sparse_step", "intermediate_size", model);
  refuse_dense_list(config);
  read_truth(config, "qkv_bias", true, {"qkv_bias"}, model);
  model.set("ffn", config.whole("moe_intermediate_size", 1, most_ffn));
  model.set("shared_ffn", config.whole("shared_expert_intermediate_size", 1, most_ffn));
  add_experts(config, "num_experts", model);
}

void describe_olmoe(ConfigReader& config, Description& model) {
  add_sparse(config, false, model);
  refuse_biases(config);
  model.set_all({"qk_norm", "qk_norm_whole"});
  model.set("ffn", config.whole("intermediate_size", 1, most_ffn));
  add_experts(config, "num_experts", model);
}

// Left out: biases of projections, norms and head, a millionth of the parameters.
void describe_phimoe(ConfigReader& config, Description& model) {
  add_sparse(config, false, model);
  read_truth(config, "attention_bias", false, {"qkv_bias"}, model);
  read_window(config, model);
  model.set("ffn", config.whole("intermediate_size", 1, most_ffn));
  add_experts(config, "num_local_experts", model);
}

void describe_glm4_moe(ConfigReader& config, Description& model) {
  add_sparse(config, false, model);
  read_truth(config, "attention_bias", false, {"qkv_bias"}, model);
  read_truth(config, "use_qk_norm", false, {"qk_norm"}, model);
  const std::int64_t ffn = config.whole("moe_intermediate_size", 1, most_ffn);
  model.set("ffn", ffn);
  add_experts(config, "n_routed_experts", model);
  add_shared(config, "n_shared_experts", "first_k_dense_replace", ffn, model);
  add_predicted(config, model);
}

void describe_minimax_m2(ConfigReader& config, Description& model) {
  add_sparse(config, false, model);
  if (config.truth("use_qk_norm", true)) model.set_all({"qk_norm", "qk_norm_whole"});
  model.set("ffn", config.whole("intermediate_size", 1, most_ffn));
  add_experts(config, "num_local_experts", model);
}

// In each layer with experts, one expert of the routed width is visited by all tokens.
void describe_llama4(ConfigReader& config, Description& model) {
  add_sparse(config, false, model);
  refuse_biases(config);
  const std::int64_t ffn = config.whole("intermediate_size", 1, most_ffn);
  model.set("ffn", ffn);
  model.set("shared_ffn", ffn);
  read_step(config, "interleave_moe_layer_step", "intermediate_size_mlp", model);
  add_experts(config, "num_local_experts", model);
}

void describe_ernie4_5_moe(ConfigReader& config, Description& model) {
  add_sparse(config, true, model);
  if (config.truth("use_bias", false)) config.refuse("use_bias", "a bias of matrices", "false");
  if (config.optional_whole("moe_layer_interval", 1, 10'000).value_or(1) != 1)
    config.refuse("moe_layer_interval", "layers without experts between those that have them", "1");
  const std::int64_t ffn = config.whole("moe_intermediate_size", 1, most_ffn);
  model.set("ffn", ffn);
  const std::int64_t experts = config.whole("moe_num_experts", 1, 4096);
  model.set("experts", experts);
  model.set("experts_per_token", config.whole("moe_k", 1, experts));
  add_shared(config, "moe_num_shared_experts", "moe_layer_start_index", ffn, model);
}

void describe_granitemoe(ConfigReader& config, Description& model) {
  add_sparse(config, false, model);
  refuse_biases(config);
  model.set("ffn", config.whole("intermediate_size", 1, most_ffn));
  add_experts(config, "num_local_experts", model);
}

void describe_deepseek_v3(ConfigReader& config, Description& model) {
  config.find("head_dim");  // heads have the sizes of latent attention
  add_decoder(config, model);
  refuse_tied_head(config);
  if (config.optional_whole("moe_layer_freq", 1, 10'000).value_or(1) != 1)
    config.refuse("moe_layer_freq", "layers without experts between those that have them", "1");
  model.set("head_dim", config.whole("qk_nope_head_dim", 1, 10'000));
  model.set("rope_dim", config.whole("qk_rope_head_dim", 1, 10'000));
  model.set("value_dim", config.whole("v_head_dim", 1, 10'000));
  if (!config.is_null("q_lora_rank"))
    model.set("query_rank", config.whole("q_lora_rank", 1, most_width));
  model.set("key_rank", config.whole("kv_lora_rank", 1, most_width));
  const std::int64_t ffn = config.whole("moe_intermediate_size", 1, 1'000'000);
  model.set("ffn", ffn);
  add_experts(config, "n_routed_experts", model);
  add_shared(config, "n_shared_experts", "first_k_dense_replace", ffn, model);
  add_predicted(config, model);
}

void describe_gpt_oss(ConfigReader& config, Description& model) {
  model.set("head_dim", add_decoder(config, model).head);
  refuse_tied_head(config);
  model.set("biases", config.truth("attention_bias", true));
  read_window(config, model);
  model.set("window_every", std::int64_t{2});
  model.set("ffn", config.whole("intermediate_size", 1, most_ffn));
  add_experts(config, "num_local_experts", model);
}

}  // namespace lambcast::huggingface
