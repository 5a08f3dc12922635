#include "models/shape/shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"

namespace lambcast {
namespace {

void check_seq_len(const ModelShape& shape, std::int64_t seq_len) {
  const std::int64_t least = shape.max_seq_len == 0 ? 0 : 1;
  LAMBCAST_CHECK(seq_len >= least && seq_len <= shape.max_seq_len,
                 "{}: sequence length {} of at most {}", shape.name, seq_len, shape.max_seq_len);
}

void check_group(const Tensor& tensor, std::size_t groups) {
  LAMBCAST_CHECK(tensor.group < groups, "{} is in group {} of {}", tensor.name, tensor.group,
                 groups);
}

}  // namespace

std::int64_t embedding_width(const ModelShape& shape) {
  return shape.embedding > 0 ? shape.embedding : shape.hidden;
}

const std::string& group_of(const ModelShape& shape, const Tensor& tensor) {
  check_group(tensor, shape.groups.size());
  return shape.groups[tensor.group];
}

bool is_convolutional(const ModelShape& shape) {
  return shape.heads == 0 && shape.max_seq_len == 0;
}

std::int64_t parameters(const ModelShape& shape) {
  std::int64_t sum = 0;
  for (const Tensor& tensor : shape.tensors) sum += tensor.elements;
  return sum;
}

std::int64_t trained_parameters(const ModelShape& shape) {
  std::int64_t sum = 0;
  for (const Tensor& tensor : shape.tensors)
    if (!tensor.frozen) sum += tensor.elements;
  return sum;
}

bool is_quantized(const ModelShape& shape, const Tensor& tensor) {
  return tensor.frozen && tensor.layer >= 0 && shape.adapters && shape.adapters->frozen_bits > 0 &&
         group_of(shape, tensor) == "decay";
}

std::int64_t optimized_parameters(const ModelShape& shape) {
  std::int64_t sum = 0;
  for (const Tensor& tensor : shape.tensors)
    if (tensor.optimized) sum += tensor.elements;
  return sum;
}

std::int64_t active_parameters(const ModelShape& shape) {
  std::int64_t expert = 0;
  for (const Tensor& tensor : shape.tensors)
    if (tensor.expert) expert += tensor.elements;
  if (expert == 0) return parameters(shape);
  return parameters(shape) - expert / shape.experts * (shape.experts - shape.experts_per_token);
}

std::int64_t decoder_tokens(const DecoderStack& decoder, std::int64_t seq_len) {
  return std::max<std::int64_t>(1, std::llround(decoder.tokens * static_cast<double>(seq_len)));
}

std::size_t tensor_count(const ModelShape& shape) { return shape.tensors.size(); }

std::size_t optimized_tensor_count(const ModelShape& shape) {
  return static_cast<std::size_t>(
      std::count_if(shape.tensors.begin(), shape.tensors.end(),
                    [](const Tensor& tensor) { return tensor.optimized; }));
}

std::vector<GroupSize> optimizer_groups(const ModelShape& shape) {
  std::vector<GroupSize> sizes;
  for (const std::string& group : shape.groups) sizes.push_back({group, 0, 0});
  for (const Tensor& tensor : shape.tensors) {
    if (!tensor.optimized) continue;
    check_group(tensor, sizes.size());
    GroupSize& size = sizes[tensor.group];
    size.tensors += 1;
    size.elements += tensor.elements;
  }
  std::erase_if(sizes, [](const GroupSize& size) { return size.tensors == 0; });
  return sizes;
}

std::int64_t resolve_seq_len(const ModelShape& shape, std::optional<std::int64_t> requested,
                             const Where& where) {
  if (!requested) return shape.default_seq_len;
  if (shape.max_seq_len == 0)
    fail_input(where, fmt::format("{} has no sequence length to choose", shape.name));
  if (*requested < 1 || *requested > shape.max_seq_len)
    fail_input(where, fmt::format("{} is out of range for {}", *requested, shape.name),
               fmt::format("1 to {}", shape.max_seq_len));
  return *requested;
}

Flops block_forward_flops(const ModelShape& shape, std::int64_t layer, std::int64_t seq_len) {
  check_seq_len(shape, seq_len);
  LAMBCAST_CHECK(layer >= 0 && layer < static_cast<std::int64_t>(shape.blocks.size()),
                 "{}: block {} of {}", shape.name, layer, shape.blocks.size());
  return Flops(shape.blocks[static_cast<std::size_t>(layer)].forward_flops.at(seq_len));
}

Flops outside_forward_flops(const ModelShape& shape, std::int64_t seq_len) {
  check_seq_len(shape, seq_len);
  return Flops(shape.outside.forward_flops.at(seq_len));
}

Flops forward_flops(const ModelShape& shape, std::int64_t seq_len) {
  Flops sum = outside_forward_flops(shape, seq_len);
  for (const Cost& block : shape.blocks) sum += Flops(block.forward_flops.at(seq_len));
  return sum;
}

Flops training_flops(const ModelShape& shape, std::int64_t seq_len) {
  if (!shape.adapters) return 3.0 * forward_flops(shape, seq_len);
  const auto s = static_cast<double>(seq_len);
  Flops flops = 2.0 * forward_flops(shape, seq_len);
  for (const Cost& block : shape.blocks) flops += Flops(block.forward_flops.per_token_pair * s * s);
  return flops + Flops(6 * s * static_cast<double>(trained_parameters(shape)));
}

Bytes activation_bytes(const ModelShape& shape, std::int64_t micro_batch, std::int64_t seq_len,
                       bool with_scores, double element_bytes) {
  check_seq_len(shape, seq_len);
  LAMBCAST_CHECK(micro_batch >= 1, "micro batch {}", micro_batch);
  const auto widened = [&](const PerSample& bytes, const PerSample& masks) {
    return element_bytes / 2 * (bytes.at(seq_len) - masks.at(seq_len)) + masks.at(seq_len);
  };
  double per_sample = widened(shape.outside.activation_bytes, shape.embedding_activation_bytes);
  for (const Cost& block : shape.blocks)
    per_sample += widened(block.activation_bytes, block.mask_bytes) +
                  (with_scores ? widened(block.score_bytes, block.score_mask_bytes) : 0);
  return Bytes(per_sample * static_cast<double>(micro_batch));
}

}  // namespace lambcast
