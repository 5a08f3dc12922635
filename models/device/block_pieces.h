// Common parts of the kernels of blocks (block_time.cc) and of those outside them (outer_time.cc):
// sizes of a rank, norms, and both gradients of a linear layer.
#pragma once

#include "models/device/piece_writer.h"

namespace lambcast {

// Sizes of the work of one rank.
struct RankSizes {
  std::int64_t tokens, heads, kv_heads, head_size, value_size, ffn, up, vocab;
  double norm_tokens;

  // Computes the sizes of `share` of the rank's tokens.
  explicit RankSizes(const BlockWork& w, double share = 1);
  std::int64_t query_width() const { return heads * head_size; }
  std::int64_t context_width() const { return heads * value_size; }
  std::int64_t qkv_width() const { return (heads + 2 * kv_heads) * head_size; }
};

inline std::int64_t share_of(std::int64_t whole, std::int64_t parts) {
  return (whole + parts - 1) / parts;
}
inline double count(double tokens, std::int64_t width) {
  return tokens * static_cast<double>(width);
}
inline double count(std::int64_t tokens, std::int64_t width) {
  return count(static_cast<double>(tokens), width);
}

// Returns the format of the attention core and of the head: 16 bits if the block's products have 8
// or 4.
MatrixFormat unscaled_format(const BlockWork& work);

void norm(const PieceWriter& writer, const RankSizes& size);
void norm_backward(const PieceWriter& writer, const RankSizes& size);

// Adds a conversion between fp32 and the 16 bits of a product, under autocast.
void autocast(const PieceWriter& writer, double elements);

// Add the kernels of bias, dropout and residual.
void residual(const PieceWriter& writer, const RankSizes& size);
void residual_backward(const PieceWriter& writer, const RankSizes& size);

// Adds a linear layer in the block's format.
void linear(const PieceWriter& writer, std::string_view name, const RankSizes& size,
            std::int64_t in, std::int64_t out);
// Adds both gradients of a linear layer, or only that of its weights.
void linear_backward(const PieceWriter& writer, std::string_view name, const RankSizes& size,
                     std::int64_t in, std::int64_t out, MatrixFormat format, bool of_input = true);

}  // namespace lambcast
