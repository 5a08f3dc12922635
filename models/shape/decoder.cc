// Dense decoders: Llama (Touvron et al. 2023) and models that change parts of its block, and
// Mixtral (Jiang et al. 2024). Names of tensors are those of Hugging Face transformers'
// LlamaForCausalLM and MixtralForCausalLM, also for architectures that use other names.
//
//   [model]
//   family = "decoder"      # or "llama", the same; "moe-llama" with experts, which has only the
//                           # keys kv_heads, tied_head and window of those below
//   kv_heads                # optional: heads
//   head_dim = 256          # optional: hidden / heads (Gemma, Qwen3)
//   tied_head = true        # the head is the embedding
//   head_bias = true        # of an untied head (Phi-2)
//   labels = 2              # a classifier without a bias replaces the head; 0: no head
//   causal = false          # tokens attend to all others (ModernBERT)
//   gated = false           # a feed-forward of two matrices (GPT-NeoX, Falcon, StarCoder2)
//   qkv_bias, projection_bias, ffn_bias = true   # Qwen2: only the first; GPT-NeoX: all
//   norm_bias = true        # norms subtract their mean and have a bias (LayerNorm)
//   qk_norm = true          # norms of queries and keys, per head (Qwen3), or of all heads at once
//   qk_norm_whole = true    # with this (OLMo 2)
//   norms = 4               # of a block: 2, or 4 with one after each half too (Gemma 2); of a
//                           # parallel block 1, or 2 with one for each half (GPT-NeoX, Falcon 40B)
//   parallel_block = true   # attention and feed-forward in parallel
//   positions = 2050        # rows of learned positions (OPT); else rotary positions
//   joined = true           # one tensor of queries, keys and values, one of gate and up (Phi-3)
//   dropout = true
//   window, window_every, window_layers    # Mistral 7B looks back 4,096 tokens in every layer,
//                           # Gemma 2 in each second, Gemma 3 512 in 5 of 6
//
// A norm costs the same before and after its half (OLMo 2 has both after): its input is kept, and
// its output.
#include <fmt/format.h>

#include "models/shape/block.h"
#include "models/shape/families.h"

namespace lambcast {
namespace {

struct DenseDecoder {
  ModelShape& shape;
  bool qkv_bias = false, projection_bias = false, ffn_bias = false, norm_bias = false;
  bool qk_norm_whole = false, joined = false;

  std::int64_t query_width() const { return shape.heads * shape.head_size; }
  std::int64_t key_width() const { return shape.kv_heads * shape.head_size; }

  void product(const Scope& scope, const std::string& name, std::int64_t in, std::int64_t out,
               TensorSplit split, bool bias) const {
    scope.matrix(name + ".weight", in * out, split);
    if (bias)
      scope.vector(name + ".bias", out,
                   split == TensorSplit::inputs ? TensorSplit::replicated : split);
  }

  void norm(const Scope& scope, const char* name) const {
    scope.vector(fmt::format("{}.weight", name), shape.hidden);
    if (norm_bias) scope.vector(fmt::format("{}.bias", name), shape.hidden);
  }

  void attention(const Scope& scope) const {
    const std::int64_t h = shape.hidden, q = query_width(), k = key_width();
    if (joined) {
      product(scope, "self_attn.qkv_proj", h, q + 2 * k, TensorSplit::outputs, qkv_bias);
    } else {
      product(scope, "self_attn.q_proj", h, q, TensorSplit::outputs, qkv_bias);
      product(scope, "self_attn.k_proj", h, k, TensorSplit::key_value, qkv_bias);
      product(scope, "self_attn.v_proj", h, k, TensorSplit::key_value, qkv_bias);
    }
    product(scope, "self_attn.o_proj", q, h, TensorSplit::inputs, projection_bias);
    if (!shape.norms_queries) return;
    const auto split = qk_norm_whole ? TensorSplit::outputs : TensorSplit::replicated;
    scope.vector("self_attn.q_norm.weight", qk_norm_whole ? q : shape.head_size, split);
    scope.vector("self_attn.k_norm.weight", qk_norm_whole ? k : shape.head_size, split);
  }

  void feed_forward(const Scope& scope) const {
    const std::int64_t h = shape.hidden, f = shape.ffn;
    if (shape.gated && joined)
      product(scope, "mlp.gate_up_proj", h, 2 * f, TensorSplit::outputs, ffn_bias);
    if (shape.gated && !joined)
      product(scope, "mlp.gate_proj", h, f, TensorSplit::outputs, ffn_bias);
    if (!shape.gated || !joined)
      product(scope, "mlp.up_proj", h, f, TensorSplit::outputs, ffn_bias);
    product(scope, "mlp.down_proj", f, h, TensorSplit::inputs, ffn_bias);
  }

  void experts(const Scope& scope) const {
    const std::int64_t elements = shape.hidden * shape.ffn;
    scope.matrix("block_sparse_moe.gate.weight", shape.hidden * shape.experts);
    for (std::int64_t e = 0; e < shape.experts; ++e)
      for (const std::string_view matrix : {"w1", "w2", "w3"})
        scope.expert(fmt::format("block_sparse_moe.experts.{}.{}.weight", e, matrix), elements,
                     matrix == "w2" ? TensorSplit::inputs : TensorSplit::outputs);
  }

  void block(const Scope& scope) const {
    attention(scope);
    if (shape.experts > 0)
      experts(scope);
    else
      feed_forward(scope);
    norm(scope, "input_layernorm");
    if (shape.norms > 1) norm(scope, "post_attention_layernorm");
    if (shape.norms < 4) return;
    norm(scope, "pre_feedforward_layernorm");
    norm(scope, "post_feedforward_layernorm");
  }

  Cost feed_forward_cost() const {
    return lambcast::feed_forward_cost(
        {.hidden = shape.hidden,
         .ffn = shape.ffn,
         .gated = shape.gated,
         .parallel = shape.parallel_block && shape.norms == 1,
         .dropout = shape.dropout,
         .experts = shape.experts,
         .experts_per_token = shape.experts > 0 ? shape.experts_per_token : 1});
  }

  void layers() const {
    const Cost feed_forward = feed_forward_cost();
    const Cost block_cost = attention_cost({.hidden = shape.hidden,
                                            .heads = shape.heads,
                                            .query_width = query_width(),
                                            .key_width = key_width(),
                                            .dropout = shape.dropout}) +
                            feed_forward + norms_cost(shape);
    for (int layer = 0; layer < shape.layers; ++layer) {
      block({shape, layer, fmt::format("model.layers.{}.", layer)});
      shape.blocks.push_back(block_cost);
      if (shape.experts > 0) shape.routed.push_back(feed_forward);
    }
  }
};

void read_heads(const Table& model, ModelShape& shape) {
  if (model.has("kv_heads")) shape.kv_heads = model.integer("kv_heads", 1, shape.heads);
  if (shape.heads % shape.kv_heads != 0)
    fail_input(model.where("kv_heads"), fmt::format("{} heads are not divisible by {} kv_heads",
                                                    shape.heads, shape.kv_heads));
}

void read_shared(const Table& model, ModelShape& shape) {
  read_flash(model, shape);
  read_tokens(model, shape);
  read_heads(model, shape);
  shape.layers = read_layers(model, "layers");
  read_window(model, shape);
  shape.gated = shape.rotary = shape.causal = true;
  shape.groups = usual_groups;
}

void read_norms(const Table& model, ModelShape& shape) {
  const std::int64_t least = shape.parallel_block ? 1 : 2;
  shape.norms = model.has("norms") ? model.integer("norms", least, 2 * least) : least;
  if (shape.norms == 3)
    fail_input(model.where("norms"),
               "a block has norms before both halves, or before and behind both", "2 or 4");
  shape.norms_queries = model.get_or<bool>("qk_norm", false);
}

// Adds the tensors and costs outside the blocks, before and after them.
void add_decoder(const Table& model, const DenseDecoder& decoder, std::int64_t positions) {
  ModelShape& shape = decoder.shape;
  const Scope top{shape, -1, "model."};
  top.matrix("embed_tokens.weight", shape.vocab * shape.hidden, TensorSplit::vocabulary);
  if (positions > 0) top.matrix("embed_positions.weight", positions * shape.hidden);
  decoder.layers();
  decoder.norm(top, "norm");
  const bool tied = model.get_or<bool>("tied_head", false);
  const bool bias = shape.experts == 0 && model.get_or<bool>("head_bias", false);
  if (tied && bias) fail_input(model.where("head_bias"), "applies to an untied head only");
  if (!add_labels(model, shape) && !tied) {
    decoder.product({shape, -1, ""}, "lm_head", shape.hidden, shape.vocab, TensorSplit::vocabulary,
                    bias);
  }
  shape.outside =
      norm_cost(shape.hidden) + vocabulary_cost(shape.hidden, shape.vocab, shape.head_share);
  if (shape.dropout) add_embedding_mask(shape);
}

void read_decoder_width(const Table& model, ModelShape& shape) {
  if (!model.has("head_dim")) return read_width(model, shape);
  shape.hidden = model.integer("hidden", 1, 1'000'000);
  shape.heads = shape.kv_heads = model.integer("heads", 1, 10'000);
  shape.ffn = model.integer("ffn", 1, 10'000'000);
  shape.head_size = shape.value_size = model.integer("head_dim", 1, 10'000);
}

}  // namespace

void build_decoder(const Table&, const Table& model, ModelShape& shape) {
  read_decoder_width(model, shape);
  read_shared(model, shape);
  shape.parallel_block = model.get_or<bool>("parallel_block", false);
  read_norms(model, shape);
  shape.gated = model.get_or<bool>("gated", true);
  shape.causal = model.get_or<bool>("causal", true);
  shape.dropout = model.get_or<bool>("dropout", false);
  const std::int64_t positions =
      model.has("positions") ? model.integer("positions", shape.max_seq_len, 1 << 30) : 0;
  shape.rotary = positions == 0;
  DenseDecoder decoder{shape};
  decoder.qkv_bias = model.get_or<bool>("qkv_bias", false);
  decoder.projection_bias = model.get_or<bool>("projection_bias", false);
  decoder.ffn_bias = model.get_or<bool>("ffn_bias", false);
  decoder.norm_bias = model.get_or<bool>("norm_bias", false);
  decoder.qk_norm_whole = model.get_or<bool>("qk_norm_whole", false);
  decoder.joined = model.get_or<bool>("joined", false);
  if (decoder.qk_norm_whole && !shape.norms_queries)
    fail_input(model.where("qk_norm_whole"), "has no effect without qk_norm = true");
  add_decoder(model, decoder, positions);
}

void build_moe_llama(const Table&, const Table& model, ModelShape& shape) {
  read_width(model, shape);
  read_shared(model, shape);
  read_experts(model, shape, shape.layers);
  shape.expert_layers.assign(static_cast<std::size_t>(shape.layers), true);
  add_decoder(model, DenseDecoder{shape}, 0);
}

}  // namespace lambcast
