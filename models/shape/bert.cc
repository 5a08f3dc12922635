// BERT (Devlin et al. 2019) as trained by bing_bert: DeepSpeedExamples training/bing_bert,
// nvidia/modelingpreln.py for the tensors, deepspeed_train.py for the optimizer groups. The heads
// compute only masked tokens, and the pooler is not trained. `pooler = false` leaves out the pooler
// and the next-sentence head (BertForMaskedLM, RoBERTa).
#include <fmt/format.h>

#include "models/shape/block.h"
#include "models/shape/families.h"

namespace lambcast {
namespace {

void add_embeddings(const Table& model, ModelShape& shape) {
  const Scope scope{shape, -1, "bert.embeddings."};
  const std::int64_t types = model.has("type_vocab") ? model.integer("type_vocab", 1, 1000) : 2;
  scope.matrix("word_embeddings.weight", shape.vocab * shape.hidden, TensorSplit::vocabulary);
  scope.matrix("position_embeddings.weight", shape.max_seq_len * shape.hidden);
  shape.tensors.back().group = shape.groups.size();
  shape.groups.emplace_back("position");
  scope.matrix("token_type_embeddings.weight", types * shape.hidden);
  scope.norm("LayerNorm", shape.hidden);
}

void add_block(const Scope& scope, bool pre_layer_norm) {
  const std::int64_t h = scope.shape.hidden;
  const std::int64_t f = scope.shape.ffn;
  scope.column("attention.self.query", h, h);
  scope.column("attention.self.key", h, h);
  scope.column("attention.self.value", h, h);
  scope.row("attention.output.dense", h, h);
  if (pre_layer_norm) {
    scope.norm("PreAttentionLayerNorm", h);
    scope.norm("PostAttentionLayerNorm", h);
  } else {
    scope.norm("attention.output.LayerNorm", h);
  }
  scope.column("intermediate.dense_act", h, f);
  scope.row("output.dense", f, h);
  if (!pre_layer_norm) scope.norm("output.LayerNorm", h);
}

// DeepSpeedTransformerLayer: query, key and value are one tensor with one trust ratio.
void add_fused_block(const Scope& scope) {
  const std::int64_t h = scope.shape.hidden;
  const std::int64_t f = scope.shape.ffn;
  scope.matrix("attn_qkvw", 3 * h * h, TensorSplit::outputs);
  scope.vector("attn_qkvb", 3 * h, TensorSplit::outputs);
  scope.matrix("attn_ow", h * h, TensorSplit::inputs);
  scope.vector("attn_ob", h);
  scope.vector("attn_nw", h);
  scope.vector("attn_nb", h);
  scope.matrix("inter_w", h * f, TensorSplit::outputs);
  scope.vector("inter_b", f, TensorSplit::outputs);
  scope.matrix("output_w", f * h, TensorSplit::inputs);
  scope.vector("output_b", h);
  scope.vector("norm_w", h);
  scope.vector("norm_b", h);
}

// Adds a classifier after the pooler, if there is one (BertForSequenceClassification).
void add_classifier(ModelShape& shape, std::int64_t labels, bool pooler) {
  const Scope top{shape, -1, ""};
  if (pooler) top.linear("bert.pooler.dense", shape.hidden, shape.hidden);
  if (labels > 0) top.linear("classifier", shape.hidden, labels);
  shape.head_share = 0;
}

void add_heads(ModelShape& shape, bool optimize_pooler, bool pooled) {
  const std::int64_t h = shape.hidden;
  const Scope top{shape, -1, ""};
  const std::size_t pooler = shape.tensors.size();
  if (pooled) top.linear("bert.pooler.dense_act", h, h);
  for (std::size_t i = pooler; i < shape.tensors.size(); ++i)
    shape.tensors[i].optimized = optimize_pooler;
  top.vector("cls.predictions.bias", shape.vocab, TensorSplit::vocabulary);
  top.linear("cls.predictions.transform.dense_act", h, h);
  top.norm("cls.predictions.transform.LayerNorm", h);
  if (pooled) top.linear("cls.seq_relationship", h, 2);
}

// Returns the cost outside the blocks. The pooler and the next-sentence head compute the first
// token, the word head only masked tokens.
Cost outside_cost(const ModelShape& shape, bool final_norm, double masked) {
  const auto h = static_cast<double>(shape.hidden);
  Cost cost = norm_cost(shape.hidden) + norm_cost(shape.hidden, masked) +
              vocabulary_cost(shape.hidden, shape.vocab, masked);
  if (final_norm) cost = cost + norm_cost(shape.hidden);
  cost.forward_flops.fixed += 2 * h * h + 4 * h;
  cost.activation_bytes.fixed += 4 * h;
  cost.whole_activation_bytes.fixed += 4 * h;
  cost.forward_flops.per_token += masked * 2 * h * h;
  cost.activation_bytes.per_token += masked * 4 * h;
  cost.whole_activation_bytes.per_token += masked * 4 * h;
  return cost;
}

}  // namespace

void build_bert(const Table&, const Table& model, ModelShape& shape) {
  read_width(model, shape);
  read_flash(model, shape);
  read_tokens(model, shape);
  shape.layers = read_layers(model, "layers");
  shape.groups = usual_groups;
  const bool pre_layer_norm = model.get<bool>("pre_layer_norm");
  const bool fused = model.get_or<bool>("fused_transformer_kernel", false);
  const bool dropout = shape.dropout = model.get_or<bool>("dropout", true);
  const double masked = model.get_or<double>("masked_fraction", 1.0);
  if (masked <= 0 || masked > 1)
    fail_input(model.where("masked_fraction"), fmt::format("{} is out of range", masked),
               "above 0, up to 1");

  shape.head_share = masked;
  add_embeddings(model, shape);
  if (pre_layer_norm) Scope{shape, -1, "bert.encoder."}.norm("FinalLayerNorm", shape.hidden);
  const Cost block = dense_block_cost(shape, dropout);
  for (int layer = 0; layer < shape.layers; ++layer) {
    const Scope scope{shape, layer, fmt::format("bert.encoder.layer.{}.", layer)};
    if (fused)
      add_fused_block(scope);
    else
      add_block(scope, pre_layer_norm);
    shape.blocks.push_back(block);
  }
  const bool pooler = model.get_or<bool>("pooler", true);
  if (model.has("labels"))
    add_classifier(shape, model.integer("labels", 0, 1'000'000), pooler);
  else
    add_heads(shape, model.get_or<bool>("optimize_pooler", true), pooler);
  shape.outside = outside_cost(shape, pre_layer_norm, shape.head_share);
  if (dropout) add_embedding_mask(shape);
}

}  // namespace lambcast
