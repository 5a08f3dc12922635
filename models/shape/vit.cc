// Vision transformer (Dosovitskiy et al. 2021) with the tensors of torchvision's VisionTransformer.
// A sample is an image of fixed length: (image_size / patch_size)^2 patches and a class token.
#include <fmt/format.h>

#include "models/shape/block.h"
#include "models/shape/families.h"

namespace lambcast {
namespace {

constexpr std::int64_t image_channels = 3;

void add_block(const Scope& scope) {
  const std::int64_t h = scope.shape.hidden;
  scope.norm("ln_1", h);
  scope.matrix("self_attention.in_proj_weight", 3 * h * h, TensorSplit::outputs);
  scope.vector("self_attention.in_proj_bias", 3 * h, TensorSplit::outputs);
  scope.row("self_attention.out_proj", h, h);
  scope.norm("ln_2", h);
  scope.column("mlp.0", h, scope.shape.ffn);
  scope.row("mlp.3", scope.shape.ffn, h);
}

}  // namespace

void build_vit(const Table&, const Table& model, ModelShape& shape) {
  read_width(model, shape);
  read_flash(model, shape);
  shape.layers = read_layers(model, "layers");
  shape.groups = usual_groups;
  const std::int64_t pixels = model.integer("image_size", 1, 10'000);
  const std::int64_t patch = model.integer("patch_size", 1, pixels);
  const std::int64_t classes = model.integer("classes", 1, 10'000'000);
  const bool dropout = model.get_or<bool>("dropout", false);
  if (pixels % patch != 0)
    fail_input(model.where("patch_size"),
               fmt::format("image_size {} is not divisible by patch_size {}", pixels, patch));
  const std::int64_t h = shape.hidden;
  const std::int64_t patches = (pixels / patch) * (pixels / patch);
  const std::int64_t patch_values = image_channels * patch * patch;

  const Scope top{shape, -1, ""};
  top.matrix("class_token", h);
  top.linear("conv_proj", patch_values, h);
  top.matrix("encoder.pos_embedding", (patches + 1) * h);
  const Cost block = dense_block_cost(shape, dropout);
  for (int layer = 0; layer < shape.layers; ++layer) {
    add_block({shape, layer, fmt::format("encoder.layers.encoder_layer_{}.", layer)});
    shape.blocks.push_back(at_length(block, patches + 1));
  }
  top.norm("encoder.ln", h);
  top.linear("heads.head", h, classes);

  const auto width = static_cast<double>(h);
  shape.outside = at_length(norm_cost(h), patches + 1);
  shape.outside.forward_flops.fixed +=
      2 * width * static_cast<double>(patches * patch_values + classes);
  shape.outside.activation_bytes.fixed += 2 * static_cast<double>(patches * patch_values) +
                                          2 * width + 4 * static_cast<double>(classes) +
                                          (dropout ? width * static_cast<double>(patches + 1) : 0);
}

}  // namespace lambcast
