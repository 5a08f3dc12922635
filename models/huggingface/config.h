// A model's config.json, as Hugging Face transformers writes it, into the description of a model
// (models/shape/load.h).
//
//   model_type      family     besides layers, hidden, heads, kv_heads, ffn, vocab, max_seq_len
//   llama, mistral  llama      tie_word_embeddings; biases and heads of their own size
//                              are refused
//   mixtral         moe-llama  num_local_experts, num_experts_per_tok
//   qwen3_moe       moe        num_experts of moe_intermediate_size in every layer, head_dim
//   deepseek_v3     moe        n_routed_experts, n_shared_experts, first_k_dense_replace, latent
//                              attention, num_nextn_predict_layers
//   gpt_oss         moe        num_local_experts, head_dim, sliding_window, biases
//   gpt2            gpt        n_layer, n_embd, n_head, n_inner, dropout where one is above 0
//   bert            bert       post-LN, type_vocab_size; every token goes through the word head
//
// Attention keeps no scores where transformers runs it in one kernel (llama and younger). A run is
// of sequences of max_position_embeddings, up to 4,096 tokens, unless --seq-len says more (assumed:
// what a model may read is not what it is trained on).
//
// Keys that bear on no cost are ignored; one that is close to a key wanted here and missing is
// refused with that key.
// Source: transformers 4.57, src/transformers/models/*/configuration_*.py.
#pragma once

#include <string>
#include <string_view>

namespace lambcast::huggingface {

// The text of the description, in TOML. Throws Error (usage) with file, line and key for text that
// is no JSON, another architecture, a missing or ill-typed value, and what no family models.
std::string description_of(std::string_view json, const std::string& file);

}  // namespace lambcast::huggingface
