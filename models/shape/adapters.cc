#include "models/shape/adapters.h"

#include <fmt/format.h>

#include <algorithm>

namespace lambcast {
namespace {

// Returns the index of the group with weight decay, which is added if it is missing.
std::size_t group_of_adapters(std::vector<std::string>& groups) {
  const auto decay = std::ranges::find(groups, "decay");
  const auto group = static_cast<std::size_t>(decay - groups.begin());
  if (decay == groups.end()) groups.emplace_back("decay");
  return group;
}

void add_pair(ModelShape& shape, std::size_t group, int layer, const char* product, std::int64_t in,
              std::int64_t out, TensorSplit of_product) {
  const auto add = [&](const char* matrix, std::int64_t width, TensorSplit split) {
    Tensor tensor;
    tensor.name = fmt::format("layers.{}.{}.adapter.{}", layer, product, matrix);
    tensor.elements = width * shape.adapters->rank;
    tensor.layer = layer;
    tensor.group = group;
    tensor.split = split;
    shape.tensors.push_back(std::move(tensor));
  };
  add("A", in, of_product);
  add("B", out, TensorSplit::outputs);
}

// Changes the bytes per token: frozen products keep no input. Adapted products keep the dropout
// mask of their input, and the input after dropout.
void change_activations(Cost& block, const ModelShape& shape) {
  const auto h = static_cast<double>(shape.hidden), f = static_cast<double>(shape.ffn);
  const auto context = static_cast<double>(shape.heads * shape.value_size);
  double whole = 3 * h, divided = 3 * context;
  if (shape.adapters->feed_forward()) {
    whole += 3 * h;
    divided += 3 * f;
  }
  block.activation_bytes.per_token += whole + divided - block.product_input_bytes.per_token;
  block.whole_activation_bytes.per_token += whole - block.whole_product_input_bytes.per_token;
  block.product_input_bytes = block.whole_product_input_bytes = block.context_bytes = {};
}

// Changes the costs of experts, which have no adapters. Like other frozen products, they keep no
// input.
void freeze_experts(Cost& routed) {
  routed.activation_bytes.per_token -= routed.product_input_bytes.per_token;
  routed.whole_activation_bytes.per_token -= routed.whole_product_input_bytes.per_token;
  routed.product_input_bytes = routed.whole_product_input_bytes = {};
}

}  // namespace

const std::vector<std::string>& adapter_target_names() {
  static const std::vector<std::string> names{"attention", "all"};
  return names;
}

ModelShape with_adapters(ModelShape shape, const Adapters& adapters, const Where& where) {
  if (shape.hidden == 0 || shape.heads == 0)
    fail_input(where, fmt::format("{} has no transformer blocks to adapt", shape.name));
  if (shape.latent)
    fail_input(where,
               fmt::format("adapters on {}'s latent attention are not modelled", shape.name));
  if (adapters.feed_forward() && shape.experts > 0)
    fail_input(where,
               fmt::format("adapters on experts, which {} has, are not modelled", shape.name),
               "--lora-targets attention");
  for (Tensor& tensor : shape.tensors) {
    tensor.frozen = true;
    tensor.optimized = false;
  }
  shape.adapters = adapters;
  shape.adapters->frozen_bits = shape.quantized_bits;
  const std::size_t group = group_of_adapters(shape.groups);
  const std::int64_t h = shape.hidden, context = shape.heads * shape.value_size;
  const std::int64_t keys = shape.kv_heads * (shape.head_size + shape.value_size);
  for (int layer = 0; layer < shape.layers; ++layer) {
    add_pair(shape, group, layer, "query_key_value", h, shape.heads * shape.head_size + keys,
             TensorSplit::outputs);
    add_pair(shape, group, layer, "projection", context, h, TensorSplit::inputs);
    if (!adapters.feed_forward()) continue;
    add_pair(shape, group, layer, "up", h, shape.gated ? 2 * shape.ffn : shape.ffn,
             TensorSplit::outputs);
    add_pair(shape, group, layer, "down", shape.ffn, h, TensorSplit::inputs);
  }
  for (Cost& block : shape.blocks) change_activations(block, shape);
  for (Cost& routed : shape.routed) freeze_experts(routed);
  return shape;
}

}  // namespace lambcast
