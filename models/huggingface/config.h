// Translates a model's config.json, as Hugging Face transformers writes it, into the description of
// a model (models/shape/load.h).
//
//   model_type        family     besides layers, hidden, heads, kv_heads, ffn, vocab, max_seq_len
//   llama, granite    decoder    head_dim, tie_word_embeddings, attention_bias, mlp_bias
//   mistral           decoder    the same, sliding_window
//   qwen2             decoder    biases of queries, keys and values
//   qwen3             decoder    head_dim, queries and keys normed head by head
//   gemma             decoder    head_dim, tied head
//   gemma2            decoder    four norms a block, sliding_window in every second layer
//   gemma3_text       decoder    the same, queries and keys normed, a window in 5 of 6 layers, or
//                                as sliding_window_pattern or layer_types says
//   phi               decoder    parallel block, all biases, that of the head too
//   phi3              decoder    joined tensors, sliding_window
//   olmo2, olmo3      decoder    queries and keys normed over all heads, layer_types
//   starcoder2        decoder    two matrices a feed-forward, all biases, sliding_window
//   gpt_neox          decoder    (Pythia too) parallel block with two norms, all biases, joined
//   opt               decoder    learned positions, all biases; of 350M's shape refused
//   falcon            decoder    parallel block, one key-value head or num_kv_heads, no biases
//   smollm3, cohere   decoder    tied head; cohere: parallel block
//   mixtral           moe-llama  num_local_experts, num_experts_per_tok
//   qwen3_moe         moe        num_experts of moe_intermediate_size in every layer, head_dim
//   deepseek_v3       moe        n_routed_experts, n_shared_experts, first_k_dense_replace, latent
//                                attention, num_nextn_predict_layers
//   gpt_oss           moe        num_local_experts, head_dim, sliding_window, biases
//   gpt2              gpt        n_layer, n_embd, n_head, n_inner, dropout where one is above 0
//   bert              bert       post-LN, type_vocab_size; every token goes through the word head
//   variants.cc, encoders.cc and sparse.cc hold further ones, a function each.
//
// The class in `architectures` decides the head (heads.h). A file of more than text is read as its
// `text_config`, with the defaults of that class.
//
// `quantization_config` of bitsandbytes gives the bits of the weights next to adapters (QLoRA).
//
// A key that the file leaves out has the default of its class. Attention keeps no scores where
// transformers runs it in one kernel (all but gpt2 and bert). A run is
// of sequences of max_position_embeddings, up to 4,096 tokens, unless --seq-len says more (assumed:
// what a model may read is not what it is trained on).
//
// Keys that bear on no cost are ignored; one that is close to a key wanted here and missing is
// refused with that key.
// Source: transformers 4.57, src/transformers/models/*/configuration_*.py.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/key_ledger.h"

namespace lambcast::huggingface {

// The text of the description, in TOML. Throws Error (usage) with file, line and key for text that
// is no JSON, another architecture, a missing or ill-typed value, and what no family models.
std::string description_of(std::string_view json, const std::string& file);

// Returns the treatment of each key. Throws as description_of does.
std::vector<LedgerEntry> key_ledger(std::string_view json, const std::string& file);

// Returns sentences, with places, about parts of the file that cost something and are not in the
// description.
std::vector<std::string> left_out(std::string_view json, const std::string& file);

}  // namespace lambcast::huggingface
