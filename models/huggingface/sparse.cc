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

}  // namespace

void describe_mixtral(ConfigReader& config, Description& model) {
  refuse_own_head_size(config, add_decoder(config, model));
  read_window(config, model);
  refuse_tied_head(config);
  model.set("ffn", config.whole("intermediate_size", 1, most_ffn));
  add_experts(config, "num_local_experts", model);
}

void describe_qwen3_moe(ConfigReader& config, Description& model) {
  model.set("head_dim", add_decoder(config, model).head);
  refuse_biases(config);
  refuse_tied_head(config);
  if (config.truth("use_sliding_window", false)) refuse_window(config);
  if (config.optional_whole("decoder_sparse_step", 1, 10'000).value_or(1) != 1)
    config.refuse("decoder_sparse_step", "layers without experts between those that have them",
                  "1");
  if (const hjson::Value* dense = config.find("mlp_only_layers");
      dense != nullptr && !dense->items.empty())
    config.refuse("mlp_only_layers", "a list of layers without experts", "[]");
  model.set("qk_norm", true);
  model.set("ffn", config.whole("moe_intermediate_size", 1, most_ffn));
  add_experts(config, "num_experts", model);
}

void describe_deepseek_v3(ConfigReader& config, Description& model) {
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
    model.set("dense_ffn", config.whole("intermediate_size", 1, most_ffn));
  }
  if (const auto depth = config.optional_whole("num_nextn_predict_layers", 0, 16);
      depth.value_or(0) > 0)
    model.set("predicted_layers", *depth);
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
