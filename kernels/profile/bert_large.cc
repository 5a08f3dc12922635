#include "kernels/profile/bert_large.h"

namespace lambcast {

TensorLayout bert_large_tensors() {
  constexpr std::size_t h = 1024, ffn = 4096, vocabulary = 30528, positions = 512;
  std::vector<std::size_t> sizes{vocabulary * h, positions * h, 2 * h, h, h};
  for (int layer = 0; layer < 24; ++layer) {
    for (int projection = 0; projection < 4; ++projection) {  // query, key, value, output
      sizes.insert(sizes.end(), {h * h, h});
    }
    sizes.insert(sizes.end(), {h, h, h * ffn, ffn, ffn * h, h, h, h});
  }
  sizes.insert(sizes.end(), {h, h});                        // final normalisation
  sizes.insert(sizes.end(), {h * h, h, h, h, vocabulary});  // masked language model head
  sizes.insert(sizes.end(), {2 * h, 2});                    // next sentence prediction
  return tensor_layout(sizes);
}

TensorLayout bert_like_tensors(std::size_t elements) {
  TensorLayout layout = bert_large_tensors();
  const double ratio = static_cast<double>(elements) / static_cast<double>(layout.elements());
  for (std::size_t& offset : layout.offsets) {
    offset = static_cast<std::size_t>(static_cast<double>(offset) * ratio);
  }
  layout.offsets.back() = elements;
  return layout;
}

}  // namespace lambcast
