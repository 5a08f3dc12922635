// Llama (Touvron et al. 2023) and Mixtral (Jiang et al. 2024) with the tensors of Hugging Face
// transformers' LlamaForCausalLM and MixtralForCausalLM. No dropout, no biases.
// `parallel_block` and `window` as of a GPT (gpt.cc): Mistral 7B looks back 4,096 tokens.
#include <fmt/format.h>

#include "models/shape/block.h"
#include "models/shape/families.h"

namespace lambcast {
namespace {

void add_attention(const Scope& scope, std::int64_t key_width) {
  const std::int64_t h = scope.shape.hidden;
  scope.matrix("self_attn.q_proj.weight", h * h, TensorSplit::outputs);
  scope.matrix("self_attn.k_proj.weight", h * key_width, TensorSplit::key_value);
  scope.matrix("self_attn.v_proj.weight", h * key_width, TensorSplit::key_value);
  scope.matrix("self_attn.o_proj.weight", h * h, TensorSplit::inputs);
}

void add_feed_forward(const Scope& scope) {
  const std::int64_t elements = scope.shape.hidden * scope.shape.ffn;
  scope.matrix("mlp.gate_proj.weight", elements, TensorSplit::outputs);
  scope.matrix("mlp.up_proj.weight", elements, TensorSplit::outputs);
  scope.matrix("mlp.down_proj.weight", elements, TensorSplit::inputs);
}

void add_mixtral_experts(const Scope& scope) {
  const std::int64_t elements = scope.shape.hidden * scope.shape.ffn;
  scope.matrix("block_sparse_moe.gate.weight", scope.shape.hidden * scope.shape.experts);
  for (std::int64_t e = 0; e < scope.shape.experts; ++e)
    for (const std::string_view matrix : {"w1", "w2", "w3"})
      scope.expert(fmt::format("block_sparse_moe.experts.{}.{}.weight", e, matrix), elements,
                   matrix == "w2" ? TensorSplit::inputs : TensorSplit::outputs);
}

void build_decoder(const Table& model, ModelShape& shape, bool moe) {
  shape.gated = shape.rotary = true;
  read_width(model, shape);
  read_flash(model, shape);
  read_tokens(model, shape);
  if (model.has("kv_heads")) shape.kv_heads = model.integer("kv_heads", 1, shape.heads);
  if (shape.heads % shape.kv_heads != 0)
    fail_input(model.where("kv_heads"), fmt::format("{} heads are not divisible by {} kv_heads",
                                                    shape.heads, shape.kv_heads));
  shape.layers = read_layers(model, "layers");
  read_window(model, shape);
  if (!moe) shape.parallel_block = model.get_or<bool>("parallel_block", false);
  if (moe) {
    read_experts(model, shape, shape.layers);
    shape.expert_layers.assign(static_cast<std::size_t>(shape.layers), true);
  }
  shape.groups = {"decay", "no_decay"};
  const std::int64_t key_width = shape.hidden / shape.heads * shape.kv_heads;

  Scope{shape, -1, "model."}.matrix("embed_tokens.weight", shape.vocab * shape.hidden,
                                    TensorSplit::vocabulary);
  const Cost feed_forward =
      feed_forward_cost({.hidden = shape.hidden,
                         .ffn = shape.ffn,
                         .gated = true,
                         .parallel = shape.parallel_block,
                         .experts = shape.experts,
                         .experts_per_token = moe ? shape.experts_per_token : 1});
  const Cost block = attention_cost({.hidden = shape.hidden,
                                     .heads = shape.heads,
                                     .query_width = shape.hidden,
                                     .key_width = key_width}) +
                     feed_forward + norms_cost(shape);
  for (int layer = 0; layer < shape.layers; ++layer) {
    const Scope scope{shape, layer, fmt::format("model.layers.{}.", layer)};
    add_attention(scope, key_width);
    if (moe)
      add_mixtral_experts(scope);
    else
      add_feed_forward(scope);
    scope.vector("input_layernorm.weight", shape.hidden);
    if (!shape.parallel_block) scope.vector("post_attention_layernorm.weight", shape.hidden);
    shape.blocks.push_back(block);
    if (moe) shape.routed.push_back(feed_forward);
  }
  Scope{shape, -1, "model."}.vector("norm.weight", shape.hidden);
  if (!model.get_or<bool>("tied_head", false))
    Scope{shape, -1, ""}.matrix("lm_head.weight", shape.vocab * shape.hidden,
                                TensorSplit::vocabulary);
  shape.outside = norm_cost(shape.hidden) + vocabulary_cost(shape.hidden, shape.vocab);
}

}  // namespace

void build_llama(const Table&, const Table& model, ModelShape& shape) {
  build_decoder(model, shape, false);
}

void build_moe_llama(const Table&, const Table& model, ModelShape& shape) {
  build_decoder(model, shape, true);
}

}  // namespace lambcast
