// Translates a model's config.json, as written by Hugging Face transformers, into the description
// of a model (models/shape/load.h).
//
//   model_type        family     keys, in addition to widths, layers, heads and vocab
//   llama, granite    decoder    head_dim, tie_word_embeddings, attention_bias, mlp_bias
//   mistral           decoder    the same, sliding_window
//   qwen2             decoder    biases of queries, keys and values
//   qwen3             decoder    head_dim, norms of queries and keys per head
//   gemma             decoder    head_dim, tied head
//   gemma2            decoder    four norms per block, sliding_window in every second layer
//   gemma3_text       decoder    the same, norms of queries and keys, a window in 5 of 6 layers, or
//                                according to sliding_window_pattern or layer_types
//   phi               decoder    parallel block, all biases, including the head's
//   phi3              decoder    joined tensors, sliding_window
//   olmo2, olmo3      decoder    norms of queries and keys over all heads, layer_types
//   starcoder2        decoder    feed-forward of two matrices, all biases, sliding_window
//   gpt_neox          decoder    (Pythia too) parallel block with two norms, all biases, joined
//   opt               decoder    learned positions, all biases; the shape of 350M is refused
//   falcon            decoder    parallel block, one key-value head or num_kv_heads, no biases
//   smollm3, cohere   decoder    tied head; cohere: parallel block
//   mixtral           moe-llama  num_local_experts, num_experts_per_tok
//   qwen3_moe         moe        num_experts of moe_intermediate_size in every layer, head_dim
//   deepseek_v3       moe        n_routed_experts, n_shared_experts, first_k_dense_replace, latent
//                                attention, num_nextn_predict_layers
//   gpt_oss           moe        num_local_experts, head_dim, sliding_window, biases
//   gpt2              gpt        n_layer, n_embd, n_head, n_inner, dropout if one is above 0
//   bert              bert       post-LN, type_vocab_size; the word head computes every token
//   variants.cc, encoders.cc and sparse.cc read further types, each with a function of its own.
//
// The class in `architectures` determines the head (heads.h). For a multimodal file, its
// `text_config` is read, with the defaults of that class.
//
// `quantization_config` of bitsandbytes sets the bits of the weights next to adapters (QLoRA).
//
// A key that the file leaves out has the default of its class. Attention keeps no scores if
// transformers runs it in one kernel (all except gpt2 and bert). A run has sequences of
// max_position_embeddings, at most 4,096 tokens, unless --seq-len states another length (assumed:
// the maximum length of a model is not the length it is trained on).
//
// Keys that do not affect the cost are ignored. An unknown key that is close to a missing required
// key is refused with that key. Source: transformers 4.57,
// src/transformers/models/*/configuration_*.py.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/key_ledger.h"

namespace lambcast::huggingface {

// Returns the description, in TOML. Throws Error (usage) with file, line and key for text that is
// not JSON, another architecture, a missing or ill-typed value, and parts that no family models.
std::string description_of(std::string_view json, const std::string& file);

// Returns the effect of each key. Throws like description_of().
std::vector<LedgerEntry> key_ledger(std::string_view json, const std::string& file);

// Returns the keys that the classes look up, and those of parts that are left out.
KeysOfFormat keys_read();

// Returns sentences, with places, about parts of the file that cost time and are not in the
// description.
std::vector<std::string> left_out(std::string_view json, const std::string& file);

}  // namespace lambcast::huggingface
