// Swin Transformer (Liu et al. 2021, arXiv 2103.14030) with the position bias of version 2 (arXiv
// 2111.09883) and optional experts. Tensors as microsoft/Swin-Transformer registers them
// (models/swin_transformer_moe.py), which also covers the dense models.
//
//   [model]
//   family = "swin"
//   hidden = 128             # of the first stage; doubles from stage to stage, as do the heads
//   heads = 4
//   depths = [2, 2, 18, 2]   # blocks of each stage
//   window_size = 12         # tokens along an edge of an attention window
//   image_size, patch_size, classes
//   experts, experts_per_token   # optional: in every second block from stage `sparse_from` on
//
// A sample is an image of (image_size / patch_size)^2 tokens. Before each further stage four
// neighbours become one token of twice the width by a product (4 C, 2 C).
#include <fmt/format.h>

#include <algorithm>

#include "models/shape/block.h"
#include "models/shape/families.h"

namespace lambcast {
namespace {

constexpr std::int64_t channels = 3, ffn_ratio = 4;
constexpr std::int64_t bias_width =
    512;  // width of the small network that computes the position bias

void add_experts(const Scope& scope, const PyramidStage& stage) {
  const std::int64_t experts = scope.shape.experts;
  scope.matrix("mlp.gate.wg.weight", stage.hidden * experts);
  scope.expert("mlp.experts.batched_fc1_w", experts * stage.hidden * stage.ffn,
               TensorSplit::outputs);
  scope.expert("mlp.experts.batched_fc1_bias", experts * stage.ffn, TensorSplit::outputs);
  scope.expert("mlp.experts.batched_fc2_w", experts * stage.ffn * stage.hidden,
               TensorSplit::inputs);
  scope.expert("mlp.experts.batched_fc2_bias", experts * stage.hidden, TensorSplit::replicated);
}

void add_block(const Scope& scope, const PyramidStage& stage, bool sparse) {
  const std::int64_t h = stage.hidden;
  scope.norm("norm1", h);
  scope.linear("attn.cpb_mlp.0", 2, bias_width);
  scope.matrix("attn.cpb_mlp.2.weight", bias_width * stage.heads);
  scope.linear("attn.qkv", h, 3 * h);
  scope.linear("attn.proj", h, h);
  scope.norm("norm2", h);
  if (sparse) {
    add_experts(scope, stage);
    return;
  }
  scope.linear("mlp.fc1", h, stage.ffn);
  scope.linear("mlp.fc2", stage.ffn, h);
}

Cost feed_forward_cost_of(const ModelShape& shape, const PyramidStage& stage, bool sparse) {
  return feed_forward_cost({.hidden = stage.hidden,
                            .ffn = stage.ffn,
                            .experts = sparse ? shape.experts : 0,
                            .experts_per_token = sparse ? shape.experts_per_token : 1});
}

Cost block_cost(const ModelShape& shape, const PyramidStage& stage, bool sparse) {
  const Cost cost = attention_cost({.hidden = stage.hidden,
                                    .heads = stage.heads,
                                    .query_width = stage.hidden,
                                    .key_width = stage.hidden}) +
                    feed_forward_cost_of(shape, stage, sparse) + norm_cost(stage.hidden) +
                    norm_cost(stage.hidden);
  return at_length(cost, stage.tokens, stage.windows);
}

// Merges four tokens of the previous stage into each token of `stage`. The inputs of its norm and
// of its product are kept.
void add_merging(const Scope& scope, const PyramidStage& stage) {
  const std::int64_t joined = 2 * stage.hidden;
  scope.matrix("downsample.reduction.weight", joined * stage.hidden);
  scope.norm("downsample.norm", joined);
  const auto elements = static_cast<double>(stage.tokens * joined);
  scope.shape.outside.forward_flops.fixed += 2 * elements * static_cast<double>(stage.hidden);
  scope.shape.outside.activation_bytes.fixed += 4 * elements;
}

std::vector<PyramidStage> read_stages(const Table& model) {
  const std::vector<std::int64_t> depths = stage_counts(model, "depths", 8, 1000);
  const std::int64_t pixels = model.integer("image_size", 1, 10'000);
  const std::int64_t patch = model.integer("patch_size", 1, pixels);
  const std::int64_t window = model.integer("window_size", 1, 10'000);
  PyramidStage stage;
  stage.hidden = model.integer("hidden", 1, 10'000);
  stage.heads = model.integer("heads", 1, stage.hidden);
  if (stage.hidden % stage.heads != 0)
    fail_input(model.where("heads"),
               fmt::format("hidden {} is not divisible by {} heads", stage.hidden, stage.heads));
  if (pixels % patch != 0)
    fail_input(model.where("patch_size"),
               fmt::format("image_size {} is not divisible by patch_size {}", pixels, patch));
  std::int64_t edge = pixels / patch;
  std::vector<PyramidStage> stages;
  for (const std::int64_t layers : depths) {
    const std::int64_t across = std::min(edge, window);
    if (edge % across != 0 || (stages.size() + 1 < depths.size() && edge % 2 != 0))
      fail_input(model.where("window_size"),
                 fmt::format("the {} x {} tokens of stage {} do not divide into windows of {} or "
                             "into pairs",
                             edge, edge, stages.size() + 1, window));
    stage.layers = layers;
    stage.ffn = ffn_ratio * stage.hidden;
    stage.tokens = edge * edge;
    stage.windows = (edge / across) * (edge / across);
    stages.push_back(stage);
    edge /= 2;
    stage.hidden *= 2;
    stage.heads *= 2;
  }
  return stages;
}

std::int64_t blocks_of(const std::vector<PyramidStage>& stages, std::int64_t from, int every) {
  std::int64_t blocks = 0;
  for (std::size_t s = static_cast<std::size_t>(from - 1); s < stages.size(); ++s)
    blocks += stages[s].layers / every;
  return blocks;
}

}  // namespace

void build_swin(const Table&, const Table& model, ModelShape& shape) {
  shape.pyramid = read_stages(model);
  shape.drop_path = true;
  const PyramidStage& first = shape.pyramid.front();
  const PyramidStage& last = shape.pyramid.back();
  const auto stages = static_cast<std::int64_t>(shape.pyramid.size());
  std::int64_t sparse_from = stages + 1;
  if (model.has("experts")) {
    sparse_from = model.integer("sparse_from", 1, stages);
    read_experts(model, shape, blocks_of(shape.pyramid, sparse_from, 2));
  }
  const std::int64_t patch = model.integer("patch_size", 1, 10'000);
  shape.patch_values = channels * patch * patch;
  shape.vocab = model.integer("classes", 1, 10'000'000);
  shape.hidden = last.hidden;
  shape.heads = shape.kv_heads = last.heads;
  shape.head_size = shape.value_size = last.hidden / last.heads;
  shape.ffn = last.ffn;
  shape.head_share = 1 / static_cast<double>(last.tokens);
  shape.groups = usual_groups;

  const Scope top{shape, -1, ""};
  top.linear("patch_embed.proj", shape.patch_values, first.hidden);
  top.norm("patch_embed.norm", first.hidden);
  int layer = 0;
  for (std::int64_t s = 1; s <= stages; ++s) {
    const PyramidStage& stage = shape.pyramid[static_cast<std::size_t>(s - 1)];
    // The merging layer is registered after the blocks of the previous stage.
    if (s > 1) add_merging({shape, -1, fmt::format("layers.{}.", s - 2)}, stage);
    for (std::int64_t b = 0; b < stage.layers; ++b, ++layer) {
      const bool sparse = s >= sparse_from && b % 2 == 1;
      add_block({shape, layer, fmt::format("layers.{}.blocks.{}.", s - 1, b)}, stage, sparse);
      shape.blocks.push_back(block_cost(shape, stage, sparse));
      if (shape.experts == 0) continue;
      shape.expert_layers.push_back(sparse);
      shape.routed.push_back(
          sparse ? at_length(feed_forward_cost_of(shape, stage, true), stage.tokens) : Cost{});
    }
  }
  shape.layers = layer;
  top.norm("norm", last.hidden);
  top.linear("head", last.hidden, shape.vocab);

  const auto embedded = static_cast<double>(first.tokens * first.hidden);
  const auto classes = static_cast<double>(shape.vocab);
  const auto width = static_cast<double>(last.hidden);
  shape.outside.forward_flops.fixed +=
      2 * embedded * static_cast<double>(shape.patch_values) + 2 * width * classes;
  shape.outside.activation_bytes.fixed +=
      2 * embedded + 2 * width * static_cast<double>(last.tokens + 1) + 4 * classes;
}

}  // namespace lambcast
