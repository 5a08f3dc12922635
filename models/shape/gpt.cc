// GPT-2 and GPT-3 (Radford et al. 2019, Brown et al. 2020) with the tensors of Hugging Face
// transformers' GPT2LMHeadModel: fused query-key-value, head tied to the token embedding.
#include <fmt/format.h>

#include "models/shape/block.h"
#include "models/shape/families.h"

namespace lambcast {
namespace {

void add_block(const Scope& scope) {
  const std::int64_t h = scope.shape.hidden;
  scope.norm("ln_1", h);
  scope.column("attn.c_attn", h, 3 * h);
  scope.row("attn.c_proj", h, h);
  scope.norm("ln_2", h);
  scope.column("mlp.c_fc", h, scope.shape.ffn);
  scope.row("mlp.c_proj", scope.shape.ffn, h);
}

}  // namespace

void build_gpt(const Table&, const Table& model, ModelShape& shape) {
  read_width(model, shape);
  read_tokens(model, shape);
  shape.layers = read_layers(model, "layers");
  shape.groups = {"decay", "no_decay"};
  const bool dropout = model.get_or<bool>("dropout", true);

  const Scope top{shape, -1, "transformer."};
  top.matrix("wte.weight", shape.vocab * shape.hidden, TensorSplit::vocabulary);
  top.matrix("wpe.weight", shape.max_seq_len * shape.hidden);
  const Cost block = dense_block_cost(shape, dropout, keeps_scores(model));
  for (int layer = 0; layer < shape.layers; ++layer) {
    add_block({shape, layer, fmt::format("transformer.h.{}.", layer)});
    shape.blocks.push_back(block);
  }
  top.norm("ln_f", shape.hidden);

  shape.outside = norm_cost(shape.hidden) + vocabulary_cost(shape.hidden, shape.vocab);
  if (dropout) add_embedding_mask(shape);
}

}  // namespace lambcast
