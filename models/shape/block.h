// Building blocks of the model families: tensors in registration order, and the costs of a
// transformer block's sublayers.
//
// Activations kept per sample, at 2 bytes per element unless noted (Korthikanti et al. 2022,
// section 4.1, extended here to other shapes; kind: assumed). For x = query_tokens, y =
// memory_tokens per token of the sample, query width q = heads * head_dim, key width k:
//   attention     x (2 input + 1 dropout mask) h + 4 x q (query, context) + 4 y k (key, value)
//                 + 5 x y a s (softmax 2, dropout mask 1, dropped scores 2) per token, unless it is
//                 one kernel (FlashAttention, Dao et al. 2022)
//   feed-forward  (2 input + 1 dropout mask) h + 4 f;  gated: 8 f (gate, up, activated, product)
//   norm          2 h
// Only weight gradients need the input of queries, keys and values, 2 h, and both inputs
// of the feed-forward, 2 h + 2 f; the projection's input is the context. Kept if every second
// product is recomputed (products in order, the first kept; torchtitan models/llama3/parallelize,
// "op"):
//   attention     2 h (input) + 4 x q (query, context) + 2 y k (value)
//   feed-forward  2 f (up);  gated: 2 f (gate) + 2 h (output)
// Without dropout there are no masks, and scores cost 2 instead of 5. For q = k = h, f = 4h the sum
// with two norms is the 34 s h + 5 a s^2 of the paper. Tensor parallelism leaves the terms in h
// whole (10 s h) and divides those in q, k, f and the scores (24 s h + 5 a s^2), equation 2 there.
//
// A parallel block, y = x + attention(norm(x)) + feed_forward(norm(x)) (GPT-J, PaLM, Falcon 7B,
// MegaScale), has one norm, one shared input and one dropout mask: 5 h less. With a norm for each
// half (GPT-NeoX) only the input of the norms is shared: 2 h less.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/shape/shape.h"
#include "sim/base/table.h"

namespace lambcast {

// The first two parameter groups of every family (ModelShape::groups), and their indices.
inline constexpr std::size_t decay = 0, no_decay = 1;
inline const std::vector<std::string> usual_groups{"decay", "no_decay"};

// Reads a list of 1 to `most_stages` counts, each from 1 to `most`. Throws Error (usage).
std::vector<std::int64_t> stage_counts(const Table& model, const char* key, std::size_t most_stages,
                                       std::int64_t most);

// Adds tensors named under a prefix to one place of the model.
struct Scope {
  ModelShape& shape;
  int layer;
  std::string prefix;

  void matrix(
      std::string_view name, std::int64_t elements,
      TensorSplit split = TensorSplit::replicated) const;  // adds a tensor with weight decay
  void vector(std::string_view name, std::int64_t elements,
              TensorSplit split = TensorSplit::replicated) const;  // bias or norm: no weight decay
  // Weight and bias of a linear layer: replicated over tensor-parallel ranks, split by output
  // features, or split by input features.
  void linear(std::string_view name, std::int64_t in, std::int64_t out) const;
  void column(std::string_view name, std::int64_t in, std::int64_t out) const;
  void row(std::string_view name, std::int64_t in, std::int64_t out) const;
  void norm(std::string_view name, std::int64_t width) const;  // weight and bias
  void expert(std::string_view name, std::int64_t elements, TensorSplit split) const;
};

struct Attention {
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t query_width = 0;  // heads * head_dim
  std::int64_t key_width = 0;    // kv_heads * head_dim
  bool dropout = false;
  double query_tokens = 1;   // attending tokens per token of the sample
  double memory_tokens = 1;  // attended tokens per token of the sample
};
Cost attention_cost(const Attention& attention);

struct FeedForward {
  std::int64_t hidden = 0;
  std::int64_t ffn = 0;
  bool gated = false;  // three matrices instead of two
  // Attention runs in parallel with the feed-forward, which shares its input and dropout mask.
  bool parallel = false;
  bool dropout = false;
  std::int64_t experts = 0;  // 0: dense, without a router
  std::int64_t experts_per_token = 1;
  double tokens = 1;  // tokens that it computes per token of the sample
};
// Returns the cost of a feed-forward. Experts are assumed to be evenly loaded, without padding to a
// capacity and without dropped tokens.
Cost feed_forward_cost(const FeedForward& feed_forward);

// Returns the total cost of the experts that every token visits.
Cost shared_experts_cost(const ModelShape& shape);

Cost norm_cost(std::int64_t hidden, double tokens = 1);
// Returns the activations of a block's norms: their inputs. The norms of a parallel block share
// one.
Cost norms_cost(const ModelShape& shape);

// Adds the dropout mask after the embedding, one byte per element, to shape.outside.
void add_embedding_mask(ModelShape& shape, double tokens = 1);

// Returns the common part of BERT, GPT and ViT blocks: attention at full width, an ungated
// feed-forward and norms.
Cost dense_block_cost(const ModelShape& shape, bool dropout);

// Returns the cost of the output layer over the vocabulary. Its 2-byte input and 4-byte logits are
// kept.
Cost vocabulary_cost(std::int64_t hidden, std::int64_t vocab, double tokens = 1);

Cost operator+(const Cost& a, const Cost& b);

// Returns the cost for samples of `tokens` tokens, as a cost that no longer depends on the length.
// Tokens attend only within `windows` equal windows.
Cost at_length(const Cost& cost, std::int64_t tokens, std::int64_t windows = 1);

// Read keys that several families share. Each checks the range, and that heads divide the width.
void read_width(const Table& model, ModelShape& shape);    // hidden, heads, ffn; kv_heads = heads
void read_flash(const Table& model, ModelShape& shape);    // flash_attention
void read_tokens(const Table& model, ModelShape& shape);   // vocab, vocab_multiple and lengths
void read_lengths(const Table& model, ModelShape& shape);  // max_seq_len, default_seq_len
void read_experts(const Table& model, ModelShape& shape, std::int64_t expert_layers);
// Adds a classifier head and returns true if the description has `labels`; 0 labels: no head at
// all.
bool add_labels(const Table& model, ModelShape& shape);
std::int64_t read_layers(const Table& model, std::string_view key);
void read_window(const Table& model, ModelShape& shape);  // window, window_every, window_layers

}  // namespace lambcast
