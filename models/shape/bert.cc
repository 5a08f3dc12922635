// BERT (Devlin et al. 2019) as trained by bing_bert: DeepSpeedExamples training/bing_bert,
// nvidia/modelingpreln.py for the tensors, deepspeed_train.py for the optimizer groups. The heads
// compute only masked tokens, and the pooler is not trained. `pooler = false` leaves out the pooler
// and the next-sentence head (BertForMaskedLM, RoBERTa).
//
// Variants, by keys of the description (transformers 4.57: albert, electra, deberta, deberta_v2):
//
//   embedding          width of the embedding and of the word head; a product widens it to h
//   shared_block       all blocks have one set of weights (ALBERT, arXiv 1909.11942)
//   distances          r distances of tokens, by whose vectors queries and keys are multiplied:
//                      4 r h FLOPs per token and block (DeBERTa, arXiv 2006.03654)
//   distance_weights   each block projects these vectors by weights of its own
//   distance_norm      there is a norm of these vectors
//   learned_positions  there is an embedding of positions
//   key_bias           keys have a bias
//
// The projections of the vectors, 4 r h^2 FLOPs per micro batch and block, are left out.
#include <fmt/format.h>

#include "models/shape/block.h"
#include "models/shape/families.h"

namespace lambcast {
namespace {

void add_embeddings(const Table& model, ModelShape& shape) {
  const Scope scope{shape, -1, "bert.embeddings."};
  const std::int64_t types = model.has("type_vocab") ? model.integer("type_vocab", 1, 1000)
                             : shape.distances > 0   ? 0
                                                     : 2;
  const std::int64_t width = embedding_width(shape);
  scope.matrix("word_embeddings.weight", shape.vocab * width, TensorSplit::vocabulary);
  if (model.get_or<bool>("learned_positions", true)) {
    scope.matrix("position_embeddings.weight", shape.max_seq_len * width);
    shape.tensors.back().group = shape.groups.size();
    shape.groups.emplace_back("position");
  }
  if (types > 0) scope.matrix("token_type_embeddings.weight", types * width);
  scope.norm("LayerNorm", width);
  if (width != shape.hidden) scope.linear("widening", width, shape.hidden);
  const bool norm = model.get_or<bool>("distance_norm", false);
  if (shape.distances == 0) return;
  scope.matrix("distances.weight", shape.distances * shape.hidden);
  if (norm) scope.norm("distances.LayerNorm", shape.hidden);
}

// Adds the products of queries and keys with the vectors of distances, and the activation memory of
// a copy of these vectors for each sample. The memory of the scores does not change.
void add_distances(const ModelShape& shape, Cost& block) {
  const double values = static_cast<double>(shape.distances * shape.hidden);
  block.forward_flops.per_token += 2 * 2 * values;
  block.activation_bytes.fixed += 2 * 2 * values;
}

void add_block(const Scope& scope, const Table& model, bool pre_layer_norm) {
  const std::int64_t h = scope.shape.hidden;
  const std::int64_t f = scope.shape.ffn;
  scope.column("attention.self.query", h, h);
  if (model.get_or<bool>("key_bias", true))
    scope.column("attention.self.key", h, h);
  else
    scope.matrix("attention.self.key", h * h, TensorSplit::outputs);
  scope.column("attention.self.value", h, h);
  if (model.get_or<bool>("distance_weights", false)) {
    scope.matrix("attention.self.pos_key", h * h, TensorSplit::outputs);
    scope.column("attention.self.pos_query", h, h);
  }
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
  top.linear("cls.predictions.transform.dense_act", h, embedding_width(shape));
  top.norm("cls.predictions.transform.LayerNorm", embedding_width(shape));
  if (pooled) top.linear("cls.seq_relationship", h, 2);
}

// Returns the cost outside the blocks. The pooler and the next-sentence head compute the first
// token, the word head only masked tokens.
Cost outside_cost(const ModelShape& shape, bool final_norm, double masked) {
  const std::int64_t width = embedding_width(shape);
  const auto h = static_cast<double>(shape.hidden), e = static_cast<double>(width);
  Cost cost =
      norm_cost(width) + norm_cost(width, masked) + vocabulary_cost(width, shape.vocab, masked);
  if (width != shape.hidden) cost.forward_flops.per_token += 2 * e * h;
  if (final_norm) cost = cost + norm_cost(shape.hidden);
  cost.forward_flops.fixed += 2 * h * h + 4 * h;
  cost.activation_bytes.fixed += 4 * h;
  cost.whole_activation_bytes.fixed += 4 * h;
  cost.forward_flops.per_token += masked * 2 * h * e;
  cost.activation_bytes.per_token += masked * (2 * h + 2 * e);
  cost.whole_activation_bytes.per_token += masked * (2 * h + 2 * e);
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
  if (model.has("embedding")) shape.embedding = model.integer("embedding", 1, 1'000'000);
  if (model.has("distances")) shape.distances = model.integer("distances", 0, 1'000'000);
  shape.shared_block = model.get_or<bool>("shared_block", false);
  add_embeddings(model, shape);
  if (pre_layer_norm) Scope{shape, -1, "bert.encoder."}.norm("FinalLayerNorm", shape.hidden);
  Cost block = dense_block_cost(shape, dropout);
  add_distances(shape, block);
  shape.blocks.assign(static_cast<std::size_t>(shape.layers), block);
  for (int layer = 0; layer < (shape.shared_block ? 1 : shape.layers); ++layer) {
    const Scope scope{shape, layer, fmt::format("bert.encoder.layer.{}.", layer)};
    if (fused)
      add_fused_block(scope);
    else
      add_block(scope, model, pre_layer_norm);
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
