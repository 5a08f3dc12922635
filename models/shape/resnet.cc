// Residual networks (He et al. 2016) as torchvision builds them. A bottleneck block has its stride
// in the 3x3 convolution; a basic block has two 3x3 convolutions and its stride in the first. The
// first block of a stage projects its shortcut if channels or pixels change. Convolutions have no
// bias. Batch-norm running statistics are buffers, not parameters, and are left out.
#include <fmt/format.h>

#include "models/shape/block.h"
#include "models/shape/families.h"

namespace lambcast {
namespace {

std::int64_t halved(std::int64_t size) { return (size + 1) / 2; }

// Adds a convolution without bias and a batch norm. The kept tensor is the norm's input; the
// convolution's input is counted with the layer that produces it.
void add_conv(const Scope& scope, Cost& cost, std::string_view conv, std::string_view norm,
              Convolution of) {
  of.norm = true;
  const std::int64_t weights = of.kernel * of.kernel * of.in * of.out;
  const auto pixels = static_cast<double>(of.size * of.size);
  scope.matrix(fmt::format("{}.weight", conv), weights);
  scope.norm(norm, of.out);
  cost.forward_flops.fixed += 2 * pixels * static_cast<double>(weights);
  cost.activation_bytes.fixed += 2 * pixels * static_cast<double>(of.out);
  scope.shape.convolutions.push_back(of);
}

// Adds the kept output of a ReLU.
void keep(Cost& cost, std::int64_t channels, std::int64_t size) {
  cost.activation_bytes.fixed += 2 * static_cast<double>(channels * size * size);
}

struct Stage {
  std::int64_t blocks = 0;
  std::int64_t in = 0;     // channels into the stage's first block
  std::int64_t width = 0;  // channels of the 3x3 convolutions
  std::int64_t size = 0;   // pixels along an edge, before the stage's stride
  std::int64_t stride = 1;
  bool basic = false;

  std::int64_t out() const { return basic ? width : 4 * width; }
  std::int64_t after() const { return stride == 2 ? halved(size) : size; }
};

void add_basic_block(const Scope& scope, Cost& cost, const Stage& stage, bool first) {
  const std::int64_t out = stage.out(), after = stage.after();
  const std::int64_t in = first ? stage.in : out, stride = first ? stage.stride : 1;
  add_conv(scope, cost, "conv1", "bn1",
           {.kernel = 3, .stride = stride, .in = in, .out = out, .size = after, .relu = true});
  keep(cost, out, after);
  add_conv(scope, cost, "conv2", "bn2",
           {.kernel = 3, .in = out, .out = out, .size = after, .relu = true, .shortcut = true});
  if (first && (in != out || stage.stride == 2))
    add_conv(scope, cost, "downsample.0", "downsample.1",
             {.kernel = 1, .stride = stride, .in = in, .out = out, .size = after});
  keep(cost, out, after);
}

void add_bottleneck(const Scope& scope, Cost& cost, const Stage& stage, bool first) {
  const std::int64_t out = stage.out(), after = stage.after(), width = stage.width;
  const std::int64_t in = first ? stage.in : out, stride = first ? stage.stride : 1;
  const std::int64_t before = first ? stage.size : after;
  add_conv(scope, cost, "conv1", "bn1",
           {.kernel = 1, .in = in, .out = width, .size = before, .relu = true});
  keep(cost, width, before);
  add_conv(scope, cost, "conv2", "bn2",
           {.kernel = 3, .stride = stride, .in = width, .out = width, .size = after, .relu = true});
  keep(cost, width, after);
  add_conv(scope, cost, "conv3", "bn3",
           {.kernel = 1, .in = width, .out = out, .size = after, .relu = true, .shortcut = true});
  if (first)
    add_conv(scope, cost, "downsample.0", "downsample.1",
             {.kernel = 1, .stride = stride, .in = in, .out = out, .size = after});
  keep(cost, out, after);
}

}  // namespace

void build_resnet(const Table&, const Table& model, ModelShape& shape) {
  const std::vector<std::int64_t> blocks = stage_counts(model, "blocks", 6, 1000);
  const std::int64_t width = model.integer("width", 1, 4096);
  const std::int64_t classes = model.integer("classes", 1, 10'000'000);
  const std::int64_t pixels = model.integer("image_size", 1, 10'000);
  const bool basic = model.has("block") && model.choice("block", {"bottleneck", "basic"}) == 1;
  shape.groups = usual_groups;

  const Scope top{shape, -1, ""};
  std::int64_t size = halved(pixels);
  add_conv(top, shape.outside, "conv1", "bn1",
           {.kernel = 7, .stride = 2, .in = 3, .out = width, .size = size, .relu = true});
  keep(shape.outside, width, size);
  size = halved(size);  // max pooling
  keep(shape.outside, width, size);

  Stage stage{.in = width, .width = width, .size = size, .basic = basic};
  int layer = 0;
  for (std::size_t s = 0; s < blocks.size(); ++s) {
    stage.blocks = blocks[s];
    for (std::int64_t b = 0; b < stage.blocks; ++b, ++layer) {
      shape.blocks.emplace_back();
      const Scope scope{shape, layer, fmt::format("layer{}.{}.", s + 1, b)};
      (basic ? add_basic_block : add_bottleneck)(scope, shape.blocks.back(), stage, b == 0);
    }
    stage = {.in = stage.out(),
             .width = stage.width * 2,
             .size = stage.after(),
             .stride = 2,
             .basic = basic};
  }
  shape.layers = layer;
  shape.hidden = stage.in;
  top.linear("fc", shape.hidden, classes);
  shape.convolutions.push_back({.kernel = 1, .in = shape.hidden, .out = classes, .size = 1});
  shape.outside.forward_flops.fixed +=
      2 * static_cast<double>(shape.hidden) * static_cast<double>(classes);
  shape.outside.activation_bytes.fixed +=
      2 * static_cast<double>(shape.hidden) + 4 * static_cast<double>(classes);
}

}  // namespace lambcast
