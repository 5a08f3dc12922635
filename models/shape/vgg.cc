// Plain convolutional networks (Simonyan and Zisserman 2015) as torchvision builds them without
// batch norm: stages of 3x3 convolutions with biases, each followed by a ReLU in place, and a max
// pooling that halves the image. Channels double from stage to stage up to eight times the first.
// An average pooling to 7 x 7 and three linear layers follow.
#include <fmt/format.h>

#include <algorithm>

#include "models/shape/block.h"
#include "models/shape/families.h"

namespace lambcast {
namespace {

constexpr std::int64_t pooled = 7;  // pixels along an edge of the linear layers' input

// Adds a linear layer that keeps its outputs, and returns their number.
std::int64_t add_linear(const Scope& scope, Cost& cost, std::string_view name, std::int64_t in,
                        std::int64_t out, double output_bytes) {
  scope.linear(name, in, out);
  cost.forward_flops.fixed += 2 * static_cast<double>(in * out);
  cost.activation_bytes.fixed += output_bytes * static_cast<double>(out);
  scope.shape.convolutions.push_back({.kernel = 1, .in = in, .out = out, .size = 1});
  return out;
}

}  // namespace

void build_vgg(const Table&, const Table& model, ModelShape& shape) {
  const std::vector<std::int64_t> stages = stage_counts(model, "convolutions", 6, 100);
  const std::int64_t width = model.integer("width", 1, 4096);
  const std::int64_t hidden = model.integer("hidden", 1, 1'000'000);
  const std::int64_t classes = model.integer("classes", 1, 10'000'000);
  std::int64_t size = model.integer("image_size", 1, 10'000);
  shape.groups = usual_groups;

  std::int64_t in = 3, out = width;
  int layer = 0;
  for (const std::int64_t convolutions : stages) {
    for (std::int64_t c = 0; c < convolutions; ++c) {
      shape.blocks.emplace_back();
      Cost& cost = shape.blocks.back();
      const Scope scope{shape, layer, fmt::format("features.{}.", layer)};
      const auto pixels = static_cast<double>(size * size);
      scope.matrix("weight", 9 * in * out);
      scope.vector("bias", out);
      cost.forward_flops.fixed += 2 * pixels * static_cast<double>(9 * in * out);
      cost.activation_bytes.fixed += 2 * pixels * static_cast<double>(out);
      shape.convolutions.push_back({.kernel = 3, .in = in, .out = out, .size = size, .relu = true});
      in = out;
      ++layer;
    }
    size /= 2;
    shape.blocks.back().activation_bytes.fixed += 2 * static_cast<double>(out * size * size);
    out = std::min(2 * out, 8 * width);
  }
  shape.layers = layer;
  const Scope top{shape, -1, "classifier."};
  shape.hidden = hidden;
  std::int64_t width_in = in * pooled * pooled;
  shape.outside.activation_bytes.fixed += 2 * static_cast<double>(width_in);
  for (const char* name : {"0", "3"})
    width_in = add_linear(top, shape.outside, name, width_in, hidden, 2);
  add_linear(top, shape.outside, "6", width_in, classes, 4);
}

}  // namespace lambcast
