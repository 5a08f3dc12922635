#include "models/device/block_pieces.h"
#include "models/device/image_time.h"
#include "models/device/matrix_product.h"

namespace lambcast {
namespace {

std::int64_t embedding_width(const BlockWork& work) {
  return work.embedding > 0 ? work.embedding : work.hidden;
}

}  // namespace

std::vector<Piece> embedding_forward(const BlockWork& work, const GpuRates& rates) {
  std::vector<Piece> pieces;
  const RankSizes size(work);
  const PieceWriter w{work, rates, pieces, BlockPart::embedding, Pass::forward};
  if (work.patch_values > 0) patch_embedding_forward(w, size.tokens);
  if (work.patch_values > 0 || work.vocab == 0) return pieces;
  w.memory("look-up", count(size.tokens, embedding_width(work)), 4);
  if (embedding_width(work) != work.hidden)
    linear(w, "widening", size, embedding_width(work), work.hidden);
  if (work.dropout) w.memory("dropout", count(size.norm_tokens, work.hidden), 5);
  return pieces;
}

std::vector<Piece> embedding_backward(const BlockWork& work, const GpuRates& rates) {
  std::vector<Piece> pieces;
  const RankSizes size(work);
  const PieceWriter w{work, rates, pieces, BlockPart::embedding, Pass::weight_gradient};
  if (work.patch_values > 0) patch_embedding_backward(w, size.tokens);
  if (work.patch_values > 0 || work.vocab == 0) return pieces;
  if (work.dropout) w.memory("dropout", count(size.norm_tokens, work.hidden), 5);
  if (work.adapters) return pieces;
  if (embedding_width(work) != work.hidden)
    linear_backward(w, "widening", size, embedding_width(work), work.hidden, work.format);
  // The gradients of rows are read in 16 bits and added to sums in fp32.
  w.memory("look-up", count(size.tokens, embedding_width(work)), 10);
  return pieces;
}

std::vector<Piece> head_forward(const BlockWork& work, const GpuRates& rates) {
  std::vector<Piece> pieces;
  if (work.vocab == 0) return pieces;
  const RankSizes size(work, work.head_share);
  const PieceWriter w{work, rates, pieces, BlockPart::head, Pass::forward};
  norm(w, size);
  const MatrixFormat format = unscaled_format(work);
  w.product("head", size.tokens, size.vocab, embedding_width(work), format,
            rows_aligned(format, {size.vocab, embedding_width(work)}));
  const bool compiled = has_compiled_loss(work);
  w.memory("loss", count(size.tokens, size.vocab), compiled ? 8 : 34, compiled ? 2 : 6);
  return pieces;
}

std::vector<Piece> head_backward(const BlockWork& work, const GpuRates& rates) {
  std::vector<Piece> pieces;
  if (work.vocab == 0) return pieces;
  const RankSizes size(work, work.head_share);
  const PieceWriter w{work, rates, pieces, BlockPart::head, Pass::input_gradient};
  const bool compiled = has_compiled_loss(work);
  w.memory("loss", count(size.tokens, size.vocab), compiled ? 4 : 12, compiled ? 1 : 2);
  BlockWork unscaled = work;
  unscaled.format = unscaled_format(work);
  const PieceWriter head{unscaled, rates, pieces, BlockPart::head, Pass::input_gradient};
  linear_backward(head, "head", size, embedding_width(work), size.vocab, unscaled.format);
  norm_backward(head, size);
  return pieces;
}

}  // namespace lambcast
