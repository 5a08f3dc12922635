// GPT-2 and GPT-3 (Radford et al. 2019, Brown et al. 2020) with the tensors of Hugging Face
// transformers' GPT2LMHeadModel: fused query-key-value, head tied to the token embedding. With
// `labels`, a classifier replaces that head.
//
// `parallel_block` runs attention and feed-forward in parallel, without ln_2. `window` is the
// number of tokens that every layer, or every window_every-th layer, looks back. With `experts`,
// the last of every `sparse_every` blocks has a gate and that number of feed-forwards, as
// DeepSpeed's MoE layer registers them (deepspeed/moe/layer.py).
#include <fmt/format.h>

#include "models/shape/block.h"
#include "models/shape/families.h"

namespace lambcast {
namespace {

void add_gpt_experts(const Scope& scope) {
  const ModelShape& shape = scope.shape;
  scope.matrix("mlp.deepspeed_moe.gate.wg.weight", shape.hidden * shape.experts);
  for (std::int64_t e = 0; e < shape.experts; ++e) {
    const std::string name = fmt::format("mlp.deepspeed_moe.experts.deepspeed_experts.{}.", e);
    scope.expert(name + "c_fc.weight", shape.hidden * shape.ffn, TensorSplit::outputs);
    scope.expert(name + "c_fc.bias", shape.ffn, TensorSplit::outputs);
    scope.expert(name + "c_proj.weight", shape.ffn * shape.hidden, TensorSplit::inputs);
    scope.expert(name + "c_proj.bias", shape.hidden, TensorSplit::replicated);
  }
}

void add_gpt_block(const Scope& scope, bool sparse) {
  const std::int64_t h = scope.shape.hidden;
  scope.norm("ln_1", h);
  scope.column("attn.c_attn", h, 3 * h);
  scope.row("attn.c_proj", h, h);
  if (!scope.shape.parallel_block) scope.norm("ln_2", h);
  if (sparse) {
    add_gpt_experts(scope);
    return;
  }
  scope.column("mlp.c_fc", h, scope.shape.ffn);
  scope.row("mlp.c_proj", scope.shape.ffn, h);
}

Cost experts_cost(const ModelShape& shape, bool dropout) {
  return feed_forward_cost({.hidden = shape.hidden,
                            .ffn = shape.ffn,
                            .dropout = dropout,
                            .experts = shape.experts,
                            .experts_per_token = shape.experts_per_token});
}

void add_block_cost(ModelShape& shape, bool dropout, bool sparse) {
  const Cost routed = sparse ? experts_cost(shape, dropout) : Cost{};
  shape.blocks.push_back(sparse ? attention_cost({.hidden = shape.hidden,
                                                  .heads = shape.heads,
                                                  .query_width = shape.hidden,
                                                  .key_width = shape.hidden,
                                                  .dropout = dropout}) +
                                      routed + norms_cost(shape)
                                : dense_block_cost(shape, dropout));
  if (shape.experts > 0) shape.routed.push_back(routed);
}

}  // namespace

void build_gpt(const Table&, const Table& model, ModelShape& shape) {
  read_width(model, shape);
  read_flash(model, shape);
  read_tokens(model, shape);
  shape.layers = read_layers(model, "layers");
  shape.groups = usual_groups;
  const bool dropout = model.get_or<bool>("dropout", true);
  shape.causal = true;
  shape.parallel_block = model.get_or<bool>("parallel_block", false);
  if (shape.parallel_block) shape.norms = 1;
  read_window(model, shape);

  const Scope top{shape, -1, "transformer."};
  top.matrix("wte.weight", shape.vocab * shape.hidden, TensorSplit::vocabulary);
  top.matrix("wpe.weight", shape.max_seq_len * shape.hidden);
  std::int64_t sparse_every = 0;
  if (model.has("experts")) {
    sparse_every = model.has("sparse_every") ? model.integer("sparse_every", 1, shape.layers) : 2;
    read_experts(model, shape, shape.layers / sparse_every);
    if (shape.parallel_block)
      fail_input(model.where("parallel_block"),
                 "applies only to dense models; this one has experts");
  }
  for (int layer = 0; layer < shape.layers; ++layer) {
    const bool sparse = sparse_every > 0 && (layer + 1) % sparse_every == 0;
    add_gpt_block({shape, layer, fmt::format("transformer.h.{}.", layer)}, sparse);
    add_block_cost(shape, dropout, sparse);
    if (sparse_every > 0) shape.expert_layers.push_back(sparse);
  }
  top.norm("ln_f", shape.hidden);

  add_labels(model, shape);
  shape.outside =
      norm_cost(shape.hidden) + vocabulary_cost(shape.hidden, shape.vocab, shape.head_share);
  if (dropout) add_embedding_mask(shape);
}

}  // namespace lambcast
