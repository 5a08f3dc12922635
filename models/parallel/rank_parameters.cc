#include "models/parallel/rank_parameters.h"

#include <algorithm>

#include "sim/base/check.h"

namespace lambcast::parallel {
namespace {

constexpr std::int64_t vocabulary_multiple = 128;  // multiplied by tp; Megatron-LM's default

double padded_share(std::int64_t vocab, int tp) {
  if (tp == 1) return 1;
  const std::int64_t multiple = vocabulary_multiple * tp;
  const std::int64_t padded = (vocab + multiple - 1) / multiple * multiple;
  return static_cast<double>(padded) / static_cast<double>(vocab) / tp;
}

// Adds a tensor's elements on one rank, counted as trained.
void add_trained(const Tensor& tensor, const ModelShape& shape, const ParallelLayout& layout,
                 RankParameters& chunk) {
  const auto elements = static_cast<double>(tensor.elements);
  if (tensor.expert) {
    chunk.experts += elements / layout.ep / layout.expert_tp();
    return;
  }
  const double held = elements * tensor_share(tensor.split, shape, layout.tp);
  (tensor.split == TensorSplit::replicated ? chunk.whole : chunk.divided) += held;
  if (tensor.split == TensorSplit::vocabulary) chunk.vocabulary += held;
}

void add(const Tensor& tensor, const ModelShape& shape, const ParallelLayout& layout,
         RankParameters& chunk) {
  if (!tensor.frozen) {
    add_trained(tensor, shape, layout, chunk);
    return;
  }
  RankParameters of;
  add_trained(tensor, shape, layout, of);
  chunk.frozen += of.total();
  if (is_quantized(shape, tensor)) chunk.quantized += of.total();
  chunk.vocabulary += of.vocabulary;
}

bool is_vocabulary_matrix(const Tensor& tensor, const ModelShape& shape) {
  return tensor.split == TensorSplit::vocabulary &&
         tensor.elements >= shape.vocab * embedding_width(shape);
}

template <typename Predicate>
std::size_t position_where(std::span<const ChunkContent> contents, Predicate predicate) {
  const auto found = std::find_if(contents.begin(), contents.end(), predicate);
  LAMBCAST_CHECK(found != contents.end(), "no chunk of {} has it", contents.size());
  return static_cast<std::size_t>(found - contents.begin());
}

}  // namespace

RankParameters& RankParameters::operator+=(const RankParameters& other) {
  divided += other.divided;
  whole += other.whole;
  experts += other.experts;
  frozen += other.frozen;
  quantized += other.quantized;
  tied += other.tied;
  vocabulary += other.vocabulary;
  return *this;
}

double tensor_share(TensorSplit split, const ModelShape& shape, int tp) {
  switch (split) {
    case TensorSplit::replicated:
      return 1;
    case TensorSplit::outputs:
    case TensorSplit::inputs:
      return 1.0 / tp;
    case TensorSplit::key_value:
      return 1 / static_cast<double>(std::min<std::int64_t>(tp, shape.kv_heads));
    case TensorSplit::vocabulary:
      return padded_share(shape.vocab, tp);
  }
  LAMBCAST_CHECK(false, "no such split");
}

RankParameters sliced_parameters(const ModelShape& shape, const ParallelLayout& layout) {
  RankParameters held;
  for (const Tensor& tensor : shape.tensors)
    if (!tensor.frozen) add_trained(tensor, shape, layout, held);
  held.experts *= layout.ep;
  return held;
}

bool has_tied_head(const ModelShape& shape) {
  if (shape.head_share == 0) return false;  // a classifier
  return std::count_if(shape.tensors.begin(), shape.tensors.end(), [&](const Tensor& tensor) {
           return is_vocabulary_matrix(tensor, shape);
         }) == 1;
}

std::vector<RankParameters> rank_parameters(const ModelShape& shape, const ParallelLayout& layout,
                                            const Pipeline& pipeline,
                                            std::span<const ChunkContent> contents) {
  const std::size_t first = position_where(contents, [](const auto& c) { return c.embedding; });
  const std::size_t last = position_where(contents, [](const auto& c) { return c.head; });
  std::vector<std::size_t> position_of_layer;
  for (std::size_t position = 0; position < contents.size(); ++position)
    position_of_layer.insert(position_of_layer.end(),
                             static_cast<std::size_t>(contents[position].layers), position);
  LAMBCAST_CHECK(position_of_layer.size() == static_cast<std::size_t>(shape.layers),
                 "{} of {} layers are split", position_of_layer.size(), shape.layers);

  std::vector<RankParameters> chunks(contents.size());
  bool before_blocks = true;
  for (const Tensor& tensor : shape.tensors) {
    before_blocks &= tensor.layer < 0;
    const std::size_t position = tensor.layer >= 0
                                     ? position_of_layer[static_cast<std::size_t>(tensor.layer)]
                                     : (before_blocks ? first : last);
    add(tensor, shape, layout, chunks[position]);
  }
  const bool apart =
      pipeline.stage_at(static_cast<int>(first)) != pipeline.stage_at(static_cast<int>(last));
  if (has_tied_head(shape) && apart) {
    const double copy = static_cast<double>(shape.vocab * embedding_width(shape)) *
                        padded_share(shape.vocab, layout.tp);
    chunks[last].vocabulary += copy;
    if (shape.adapters) {
      chunks[last].frozen += copy;
    } else {
      chunks[first].tied = chunks[last].tied = copy;
      chunks[last].divided += copy;
    }
  }
  return chunks;
}

}  // namespace lambcast::parallel
