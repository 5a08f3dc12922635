// Any model, described tensor by tensor:
//
//   [model]
//   name = "my-model"
//   family = "tensors"
//   forward_flops_per_sample = 8.2e9       # multiply-add = 2; split over the blocks by elements
//   activation_bytes_per_sample = "90 MB"  # optional
//   max_seq_len = 512                      # optional, for samples with a length
//   default_seq_len = 128                  # length of the two numbers above (default:
//                                          # max_seq_len); they scale with other lengths
//   [[tensor]]
//   name = "fc.weight"
//   elements = 2048000
//   layer = 0             # optional: index of its block, counted from 0; absent: outside
//   group = "decay"       # optional; groups keep the order in which they first appear
//   optimized = true      # optional
//   expert = false        # optional; needs experts and experts_per_token in [model]
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "models/shape/block.h"
#include "models/shape/families.h"

namespace lambcast {
namespace {

constexpr std::int64_t max_elements = 1'000'000'000'000'000;

void add_tensors(const Table& file, ModelShape& shape) {
  std::set<std::string> names;
  for (const Table& entry : file.tables("tensor")) {
    Tensor tensor;
    tensor.name = entry.get<std::string>("name");
    if (!names.insert(tensor.name).second)
      fail_input(entry.where("name"), fmt::format("tensor '{}' is listed twice", tensor.name));
    tensor.elements = entry.integer("elements", 1, max_elements);
    if (entry.has("layer")) tensor.layer = static_cast<int>(entry.integer("layer", 0, 9'999));
    const auto group = entry.get_or<std::string>("group", "decay");
    const auto listed = std::ranges::find(shape.groups, group);
    tensor.group = static_cast<std::size_t>(listed - shape.groups.begin());
    if (listed == shape.groups.end()) shape.groups.push_back(group);
    tensor.optimized = entry.get_or<bool>("optimized", true);
    tensor.expert = entry.get_or<bool>("expert", false);
    if (tensor.expert && shape.experts == 0)
      fail_input(entry.where("expert"), "is true, but [model] has no 'experts'");
    shape.layers = std::max(shape.layers, std::int64_t{tensor.layer} + 1);
    if (tensor.expert && tensor.layer >= 0) {
      const auto layer = static_cast<std::size_t>(tensor.layer);
      if (shape.expert_layers.size() <= layer) shape.expert_layers.resize(layer + 1);
      shape.expert_layers[layer] = true;
    }
    shape.tensors.push_back(std::move(tensor));
  }
  if (shape.tensors.empty()) fail_input(file.where("tensor"), "is missing", "[[tensor]] tables");
}

// Returns the elements per block; the last entry has those outside the blocks. Throws Error for a
// block without tensors.
std::vector<double> elements_by_block(const Table& file, const ModelShape& shape) {
  std::vector<double> elements(static_cast<std::size_t>(shape.layers) + 1);
  for (const Tensor& tensor : shape.tensors) {
    const std::int64_t block = tensor.layer < 0 ? shape.layers : tensor.layer;
    elements[static_cast<std::size_t>(block)] += static_cast<double>(tensor.elements);
  }
  const auto empty = std::find(elements.begin(), elements.end() - 1, 0.0);
  if (empty != elements.end() - 1)
    fail_input(file.where("tensor"),
               fmt::format("layer {} of {} has no tensor", empty - elements.begin(), shape.layers),
               "layers counted from 0 without gaps");
  return elements;
}

}  // namespace

void build_tensors(const Table& file, const Table& model, ModelShape& shape) {
  const auto flops = model.get<double>("forward_flops_per_sample");
  if (flops <= 0 || flops > 1e24)
    fail_input(model.where("forward_flops_per_sample"), fmt::format("{} is out of range", flops),
               "above 0, up to 1e24");
  const Bytes activations = model.get_or<Bytes>("activation_bytes_per_sample", Bytes(0));
  if (model.has("max_seq_len")) read_lengths(model, shape);
  if (model.has("experts")) read_experts(model, shape, 1);
  add_tensors(file, shape);

  const std::vector<double> elements = elements_by_block(file, shape);
  double all = 0;
  for (const double part : elements) all += part;
  const auto share = [&](double amount, double part) {
    PerSample cost;
    if (shape.default_seq_len > 0)
      cost.per_token = amount * part / all / static_cast<double>(shape.default_seq_len);
    else
      cost.fixed = amount * part / all;
    return cost;
  };
  for (const double part : elements)
    shape.blocks.push_back({share(flops, part), share(activations.value(), part)});
  shape.outside = shape.blocks.back();
  shape.blocks.pop_back();
}

}  // namespace lambcast
