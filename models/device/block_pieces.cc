#include "models/device/block_pieces.h"

#include <cmath>

#include "models/device/image_time.h"
#include "models/device/matrix_product.h"
#include "sim/base/check.h"

namespace lambcast {

RankSizes::RankSizes(const BlockWork& w, double share) {
  LAMBCAST_CHECK(w.tensor_parallel >= 1 && w.context_parallel >= 1 && w.heads >= 0 &&
                     w.micro_batch >= 0 && w.seq_len >= 0,
                 "{} heads over {} x {} ranks, {} x {} tokens", w.heads, w.tensor_parallel,
                 w.context_parallel, w.micro_batch, w.seq_len);
  tokens = w.micro_batch * share_of(w.seq_len, w.context_parallel);
  if (share < 1) tokens = std::llround(std::ceil(static_cast<double>(tokens) * share));
  heads = share_of(w.heads, w.tensor_parallel);
  kv_heads = share_of(w.kv_heads, w.tensor_parallel);
  head_size = w.head_size > 0 || w.heads == 0 ? w.head_size : w.hidden / w.heads;
  value_size = w.value_size > 0 ? w.value_size : head_size;
  ffn = share_of(w.ffn, w.tensor_parallel);
  up = w.gated ? 2 * ffn : ffn;
  vocab = share_of(w.vocab, w.tensor_parallel);
  norm_tokens = static_cast<double>(tokens) / (w.sequence_parallel ? w.tensor_parallel : 1);
}

MatrixFormat unscaled_format(const BlockWork& w) {
  return w.format == MatrixFormat::single ? MatrixFormat::single : MatrixFormat::half;
}

void norm(const PieceWriter& w, const RankSizes& size) {
  w.memory("norm", count(size.norm_tokens, w.work.hidden), w.work.autocast ? 8 : 4);
}

void autocast(const PieceWriter& w, double elements) {
  if (w.work.autocast) w.memory("autocast", elements, 6);
}

void norm_backward(const PieceWriter& w, const RankSizes& size) {
  // Eager modules use separate kernels: the gradients of weight and bias read both tensors again,
  // and the residual's gradient is added afterwards.
  const bool apart = w.work.fusion == Fusion::eager;
  const double width = w.work.autocast ? 2 : 1;
  autocast(w, count(size.norm_tokens, w.work.hidden));
  w.memory("norm", count(size.norm_tokens, w.work.hidden), (apart ? 16 : 8) * width, apart ? 3 : 1);
}

void residual(const PieceWriter& w, const RankSizes& size) {
  const double elements = count(size.norm_tokens, w.work.hidden);
  const bool eager = w.work.fusion == Fusion::eager;
  if (eager && w.work.dropout) w.memory("dropout", elements, 5);
  drop_path(w, elements);
  const double bytes = w.work.autocast ? 10 : 6;
  w.memory("residual", elements, !eager && w.work.dropout ? 7 : bytes);
}

void residual_backward(const PieceWriter& w, const RankSizes& size) {
  const double elements = count(size.norm_tokens, w.work.hidden);
  if (w.work.dropout) w.memory("dropout", elements, 5);
  autocast(w, elements);
  drop_path(w, elements);
}

void linear(const PieceWriter& w, std::string_view name, const RankSizes& size, std::int64_t in,
            std::int64_t out) {
  if (w.work.autocast && w.pass == Pass::forward) autocast(w, count(in, out));
  w.product(name, size.tokens, out, in, w.work.format, rows_aligned(w.work.format, {in, out}));
}

void linear_backward(const PieceWriter& w, std::string_view name, const RankSizes& size,
                     std::int64_t in, std::int64_t out, MatrixFormat format, bool of_input) {
  const bool aligned = rows_aligned(format, {in, out});
  if (format == w.work.format) w.cast(count(size.tokens, out));
  if (of_input) w.product(name, size.tokens, in, out, format, aligned);
  PieceWriter weight = w;
  weight.pass = Pass::weight_gradient;
  weight.product(name, out, in, size.tokens, format, aligned, true);
  if (!w.work.autocast) return;
  weight.memory("bias", count(size.tokens, out), 2);
  autocast(weight, count(in, out));
}

}  // namespace lambcast
