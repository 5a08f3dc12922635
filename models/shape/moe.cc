// Decoders with many small experts: Qwen3-MoE (arXiv 2505.09388), DeepSeek-V3 (arXiv 2412.19437),
// Kimi K2, gpt-oss (arXiv 2508.10925). Tensors as Hugging Face transformers 5 registers them: the
// experts of a layer are two tensors, [E, 2 f, h] and [E, h, f].
//
//   [model]
//   family = "moe"
//   ffn = 768               # of one expert
//   experts, experts_per_token
//   head_dim = 128          # optional: hidden / heads
//   qk_norm = true          # optional: norms of queries and keys, per head, or of all heads at
//   qk_norm_whole = true    # once with this (OLMoE, MiniMax-M2)
//   qkv_bias = true         # optional: of queries, keys and values (Qwen2-MoE, GLM-4.5)
//   tied_head = true        # optional: the head is the embedding (Granite MoE, ERNIE 4.5)
//   biases = true           # optional: of attention, router and experts (gpt-oss)
//   window, window_every    # optional: tokens that every second layer looks back (gpt-oss: 128)
//   dense_layers, dense_ffn # optional: the first layers without experts
//   sparse_every, dense_ffn # optional: the last of every sparse_every layers has experts (Llama 4
//                           # Maverick: 2)
//   shared_ffn = 2048       # optional: total width of the experts that every token visits
//   predicted_layers = 1    # optional: blocks after the last, each with a head of its own, that
//                           # predict the tokens after the next (multi-token prediction)
//   query_rank, key_rank, rope_dim, value_dim   # optional: latent attention; head_dim excludes
//                           # rope; without query_rank, queries come from the hidden vector
//                           # (V2-Lite)
//
// Latent attention (DeepSeek-V2, arXiv 2405.04434): queries and keys-values come from vectors of
// query_rank and key_rank elements; a head has head_dim + rope_dim elements of queries and keys,
// value_dim of values. Per token 2 (h r_q + r_q a (d + d_r) + h (r_k + d_r) + r_k a (d + d_v) + a
// d_v h) FLOPs and 2 a (d + d_r + d_v) per token pair.
#include <fmt/format.h>

#include "models/shape/block.h"
#include "models/shape/families.h"

namespace lambcast {
namespace {

constexpr std::int64_t max_hidden = 1'000'000;

std::int64_t optional(const Table& model, std::string_view key, std::int64_t most,
                      std::int64_t otherwise = 0) {
  return model.has(key) ? model.integer(key, 1, most) : otherwise;
}

struct Decoder {
  ModelShape& shape;
  bool biases = false, qkv_bias = false, qk_norm_whole = false;
  std::int64_t dense_layers = 0, sparse_every = 1;

  bool is_sparse(std::int64_t layer) const {
    return layer >= dense_layers && (layer + 1) % sparse_every == 0;
  }
  std::int64_t query_width() const { return shape.heads * shape.head_size; }
  std::int64_t key_width() const { return shape.kv_heads * shape.head_size; }
  std::int64_t value_width() const { return shape.heads * shape.value_size; }

  void grouped_attention(const Scope& scope) const {
    const std::int64_t h = shape.hidden;
    scope.matrix("self_attn.q_proj.weight", h * query_width(), TensorSplit::outputs);
    scope.matrix("self_attn.k_proj.weight", h * key_width(), TensorSplit::key_value);
    scope.matrix("self_attn.v_proj.weight", h * key_width(), TensorSplit::key_value);
    scope.matrix("self_attn.o_proj.weight", query_width() * h, TensorSplit::inputs);
    if (biases || qkv_bias) {
      scope.vector("self_attn.q_proj.bias", query_width(), TensorSplit::outputs);
      scope.vector("self_attn.k_proj.bias", key_width(), TensorSplit::key_value);
      scope.vector("self_attn.v_proj.bias", key_width(), TensorSplit::key_value);
    }
    if (biases) {
      scope.vector("self_attn.o_proj.bias", h);
      scope.vector("self_attn.sinks", shape.heads, TensorSplit::outputs);
    }
    if (!shape.norms_queries) return;
    const auto split = qk_norm_whole ? TensorSplit::outputs : TensorSplit::replicated;
    scope.vector("self_attn.q_norm.weight", qk_norm_whole ? query_width() : shape.head_size, split);
    scope.vector("self_attn.k_norm.weight", qk_norm_whole ? key_width() : shape.head_size, split);
  }

  void latent_attention(const Scope& scope) const {
    const LatentAttention& latent = *shape.latent;
    const std::int64_t plain = shape.heads * (shape.head_size - latent.rope_size);
    if (latent.query_rank == 0) {
      scope.matrix("self_attn.q_proj.weight", shape.hidden * query_width(), TensorSplit::outputs);
    } else {
      scope.matrix("self_attn.q_a_proj.weight", shape.hidden * latent.query_rank);
      scope.vector("self_attn.q_a_layernorm.weight", latent.query_rank);
      scope.matrix("self_attn.q_b_proj.weight", latent.query_rank * query_width(),
                   TensorSplit::outputs);
    }
    scope.matrix("self_attn.kv_a_proj_with_mqa.weight",
                 shape.hidden * (latent.key_rank + latent.rope_size));
    scope.vector("self_attn.kv_a_layernorm.weight", latent.key_rank);
    scope.matrix("self_attn.kv_b_proj.weight", latent.key_rank * (plain + value_width()),
                 TensorSplit::outputs);
    scope.matrix("self_attn.o_proj.weight", value_width() * shape.hidden, TensorSplit::inputs);
  }

  void gated(const Scope& scope, const std::string& name, std::int64_t ffn) const {
    for (const std::string_view matrix : {"gate_proj", "up_proj", "down_proj"})
      scope.matrix(fmt::format("{}.{}.weight", name, matrix), shape.hidden * ffn,
                   matrix == "down_proj" ? TensorSplit::inputs : TensorSplit::outputs);
  }

  void experts(const Scope& scope) const {
    const std::int64_t h = shape.hidden, e = shape.experts;
    scope.matrix("mlp.gate.weight", h * e);
    if (biases) scope.vector("mlp.gate.bias", e);
    scope.expert("mlp.experts.gate_up_proj", e * h * 2 * shape.ffn, TensorSplit::outputs);
    scope.expert("mlp.experts.down_proj", e * h * shape.ffn, TensorSplit::inputs);
    if (biases) {
      scope.expert("mlp.experts.gate_up_proj_bias", e * 2 * shape.ffn, TensorSplit::outputs);
      scope.expert("mlp.experts.down_proj_bias", e * h, TensorSplit::replicated);
    }
    if (shape.shared_ffn > 0) gated(scope, "mlp.shared_experts", shape.shared_ffn);
  }

  void block(const Scope& scope, bool sparse) const {
    if (shape.latent)
      latent_attention(scope);
    else
      grouped_attention(scope);
    if (sparse)
      experts(scope);
    else
      gated(scope, "mlp", shape.dense_ffn);
    scope.vector("input_layernorm.weight", shape.hidden);
    scope.vector("post_attention_layernorm.weight", shape.hidden);
  }

  Cost attention() const {
    if (!shape.latent)
      return attention_cost({.hidden = shape.hidden,
                             .heads = shape.heads,
                             .query_width = query_width(),
                             .key_width = key_width()});
    // Latent attention has keys as wide as queries; products pass through the latent vectors.
    const auto h = static_cast<double>(shape.hidden);
    const auto q = static_cast<double>(query_width()), v = static_cast<double>(value_width());
    const auto rank_q = static_cast<double>(shape.latent->query_rank);
    const auto rank_k = static_cast<double>(shape.latent->key_rank);
    const auto rope = static_cast<double>(shape.latent->rope_size);
    const double plain = q - static_cast<double>(shape.heads) * rope;
    Cost cost;
    const double queries = rank_q > 0 ? h * rank_q + rank_q * q : h * q;
    cost.forward_flops.per_token =
        2 * (queries + h * (rank_k + rope) + rank_k * (plain + v) + v * h);
    cost.forward_flops.per_token_pair = 2 * (q + v);
    cost.whole_activation_bytes.per_token = 2 * h + 4 * (rank_q + rank_k);
    cost.activation_bytes.per_token =
        cost.whole_activation_bytes.per_token + 2 * (q + q + v) + 2 * v;
    cost.score_bytes.per_token_pair = 2 * static_cast<double>(shape.heads);
    cost.product_input_bytes.per_token = 2 * (h + rank_q + rank_k);
    cost.whole_product_input_bytes = cost.product_input_bytes;
    cost.attention_bytes.per_token = 2 * (q + q + v) + 2 * v;
    cost.context_bytes.per_token = 2 * v;
    cost.matrix_operand_bytes.per_token = 4 * (h + q + v + v + h) + 4 * (rank_q + rank_k);
    cost.whole_matrix_operand_bytes.per_token = 4 * h;
    return cost;
  }

  Cost routed() const {
    return feed_forward_cost({.hidden = shape.hidden,
                              .ffn = shape.ffn,
                              .gated = true,
                              .experts = shape.experts,
                              .experts_per_token = shape.experts_per_token});
  }

  Cost feed_forward(bool sparse) const {
    if (!sparse)
      return feed_forward_cost({.hidden = shape.hidden, .ffn = shape.dense_ffn, .gated = true});
    return shape.shared_ffn > 0 ? routed() + shared_experts_cost(shape) : routed();
  }

  Cost block_cost(bool sparse) const {
    return attention() + feed_forward(sparse) + norm_cost(shape.hidden) + norm_cost(shape.hidden);
  }

  // Adds a block that predicts a further token, behind a product that joins two normed vectors.
  void predict(std::int64_t depth) const {
    const std::int64_t h = shape.hidden;
    const Scope scope{shape, -1, fmt::format("model.predicted.{}.", depth)};
    scope.vector("enorm.weight", h);
    scope.vector("hnorm.weight", h);
    scope.matrix("eh_proj.weight", 2 * h * h, TensorSplit::outputs);
    block(scope, true);
    scope.vector("norm.weight", h);
    Cost join;
    join.forward_flops.per_token = 4 * static_cast<double>(h) * static_cast<double>(h);
    join.activation_bytes.per_token = join.whole_activation_bytes.per_token =
        6 * static_cast<double>(h);
    shape.outside =
        shape.outside + block_cost(true) + join + norm_cost(h) + vocabulary_cost(h, shape.vocab);
  }
};

void read_attention(const Table& model, ModelShape& shape) {
  if (model.has("kv_heads")) shape.kv_heads = model.integer("kv_heads", 1, shape.heads);
  if (shape.heads % shape.kv_heads != 0)
    fail_input(model.where("kv_heads"), fmt::format("{} heads are not divisible by {} kv_heads",
                                                    shape.heads, shape.kv_heads));
  shape.head_size = optional(model, "head_dim", 10'000, shape.hidden / shape.heads);
  shape.value_size = shape.head_size;
  read_window(model, shape);
  if (!model.has("key_rank")) return;
  LatentAttention latent;
  latent.query_rank = optional(model, "query_rank", max_hidden);
  latent.key_rank = model.integer("key_rank", 1, max_hidden);
  latent.rope_size = model.integer("rope_dim", 1, 10'000);
  shape.value_size = model.integer("value_dim", 1, 10'000);
  shape.head_size += latent.rope_size;
  shape.latent = latent;
}

// Adds the head over the vocabulary, or over `labels`.
void add_head(const Table& model, ModelShape& shape) {
  const bool tied = model.get_or<bool>("tied_head", false);
  if (add_labels(model, shape) || tied) return;
  Scope{shape, -1, ""}.matrix("lm_head.weight", shape.vocab * shape.hidden,
                              TensorSplit::vocabulary);
}

}  // namespace

void build_moe(const Table&, const Table& model, ModelShape& shape) {
  shape.gated = shape.rotary = shape.causal = true;
  shape.hidden = model.integer("hidden", 1, max_hidden);
  shape.heads = shape.kv_heads = model.integer("heads", 1, 10'000);
  shape.ffn = model.integer("ffn", 1, 10'000'000);
  read_tokens(model, shape);
  read_flash(model, shape);
  read_attention(model, shape);
  shape.layers = read_layers(model, "layers");
  read_experts(model, shape, shape.layers);
  Decoder decoder{shape};
  shape.norms_queries = model.get_or<bool>("qk_norm", false);
  decoder.qk_norm_whole = model.get_or<bool>("qk_norm_whole", false);
  decoder.qkv_bias = model.get_or<bool>("qkv_bias", false);
  decoder.biases = shape.biased_experts = model.get_or<bool>("biases", false);
  decoder.dense_layers = optional(model, "dense_layers", shape.layers);
  decoder.sparse_every = optional(model, "sparse_every", shape.layers, 1);
  if (decoder.dense_layers > 0 || decoder.sparse_every > 1)
    shape.dense_ffn = model.integer("dense_ffn", 1, 10'000'000);
  shape.shared_ffn = optional(model, "shared_ffn", 10'000'000);
  if (model.has("predicted_layers"))
    shape.predicted_layers = model.integer("predicted_layers", 0, 16);
  shape.groups = usual_groups;

  Scope{shape, -1, "model."}.matrix("embed_tokens.weight", shape.vocab * shape.hidden,
                                    TensorSplit::vocabulary);
  for (int layer = 0; layer < shape.layers; ++layer) {
    const bool sparse = decoder.is_sparse(layer);
    decoder.block({shape, layer, fmt::format("model.layers.{}.", layer)}, sparse);
    shape.blocks.push_back(decoder.block_cost(sparse));
    shape.routed.push_back(sparse ? decoder.routed() : Cost{});
    shape.expert_layers.push_back(sparse);
  }
  Scope{shape, -1, "model."}.vector("norm.weight", shape.hidden);
  add_head(model, shape);
  shape.outside =
      norm_cost(shape.hidden) + vocabulary_cost(shape.hidden, shape.vocab, shape.head_share);
  for (std::int64_t depth = 0; depth < shape.predicted_layers; ++depth) decoder.predict(depth);
}

}  // namespace lambcast
