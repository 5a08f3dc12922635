// Blocks of two products with an activation between them, without attention, norms and residuals.
// Programs that time a single layer (Tutel's helloworld examples) train such a block; its input is
// data and has no gradient. With `experts`, a block is a router with that number of feed-forwards.
// The exchange of the input's gradient between GPUs is counted nevertheless.
#include <fmt/format.h>

#include "models/shape/block.h"
#include "models/shape/families.h"

namespace lambcast {
namespace {

void add_experts(const Scope& scope) {
  const ModelShape& shape = scope.shape;
  scope.matrix("gate.weight", shape.hidden * shape.experts);
  scope.expert("experts.fc1_weight", shape.experts * shape.hidden * shape.ffn,
               TensorSplit::outputs);
  scope.expert("experts.fc1_bias", shape.experts * shape.ffn, TensorSplit::outputs);
  scope.expert("experts.fc2_weight", shape.experts * shape.ffn * shape.hidden, TensorSplit::inputs);
  scope.expert("experts.fc2_bias", shape.experts * shape.hidden, TensorSplit::replicated);
}

}  // namespace

void build_feed_forward(const Table&, const Table& model, ModelShape& shape) {
  shape.hidden = model.integer("hidden", 1, 1'000'000);
  shape.ffn = model.integer("ffn", 1, 10'000'000);
  shape.layers = model.integer("layers", 1, 1);
  read_lengths(model, shape);
  shape.groups = usual_groups;
  if (model.has("experts")) {
    read_experts(model, shape, shape.layers);
    shape.expert_layers.assign(static_cast<std::size_t>(shape.layers), true);
  }
  const Cost block =
      feed_forward_cost({.hidden = shape.hidden,
                         .ffn = shape.ffn,
                         .experts = shape.experts,
                         .experts_per_token = shape.experts > 0 ? shape.experts_per_token : 1});
  for (int layer = 0; layer < shape.layers; ++layer) {
    const Scope scope{shape, layer, fmt::format("layers.{}.", layer)};
    if (shape.experts > 0) {
      add_experts(scope);
    } else {
      scope.column("fc1", shape.hidden, shape.ffn);
      scope.row("fc2", shape.ffn, shape.hidden);
    }
    shape.blocks.push_back(block);
    if (shape.experts > 0) shape.routed.push_back(block);
  }
}

}  // namespace lambcast
