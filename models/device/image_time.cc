#include "models/device/image_time.h"

#include "models/device/matrix_product.h"

namespace lambcast {
namespace {

double elements_of(std::int64_t tokens, std::int64_t width) {
  return static_cast<double>(tokens) * static_cast<double>(width);
}

void product(const PieceWriter& w, std::string_view name, std::int64_t m, std::int64_t n,
             std::int64_t k, Pass pass = Pass::forward) {
  PieceWriter writer = w;
  if (pass != Pass::forward) writer.pass = pass;
  const MatrixFormat format =
      w.work.format == MatrixFormat::single ? MatrixFormat::single : MatrixFormat::half;
  writer.product(name, m, n, k, format, rows_aligned(format, {n, k}),
                 pass == Pass::weight_gradient);
}

// Adds a norm of PyTorch's modules: as in block_time.h, with fp32 tensors under autocast.
void norm(const PieceWriter& w, double elements, bool backward) {
  const double width = w.work.autocast ? 2 : 1;
  w.memory("norm", elements, (backward ? 16 : 4) * width, backward ? 3 : 1);
}

struct Merging {
  std::int64_t tokens, joined;
  double elements;

  explicit Merging(const BlockWork& work)
      : tokens(work.micro_batch * work.seq_len),
        joined(2 * work.hidden),
        elements(elements_of(tokens, joined)) {}
};

}  // namespace

void patch_embedding_forward(const PieceWriter& w, std::int64_t tokens) {
  const std::int64_t h = w.work.hidden;
  product(w, "patches", tokens, h, w.work.patch_values);
  norm(w, elements_of(tokens, h), false);
}

void patch_embedding_backward(const PieceWriter& w, std::int64_t tokens) {
  const std::int64_t h = w.work.hidden;
  norm(w, elements_of(tokens, h), true);
  product(w, "patches", h, w.work.patch_values, tokens, Pass::weight_gradient);
}

std::vector<Piece> merging_forward(const BlockWork& work, const GpuRates& rates) {
  std::vector<Piece> pieces;
  const PieceWriter w{work, rates, pieces, BlockPart::embedding, Pass::forward};
  const Merging of(work);
  w.memory("join tokens", of.elements, work.autocast ? 8 : 4);
  norm(w, of.elements, false);
  product(w, "merge", of.tokens, work.hidden, of.joined);
  return pieces;
}

std::vector<Piece> merging_backward(const BlockWork& work, const GpuRates& rates) {
  std::vector<Piece> pieces;
  const PieceWriter w{work, rates, pieces, BlockPart::embedding, Pass::input_gradient};
  const Merging of(work);
  product(w, "merge", of.tokens, of.joined, work.hidden, Pass::input_gradient);
  product(w, "merge", work.hidden, of.joined, of.tokens, Pass::weight_gradient);
  norm(w, of.elements, true);
  w.memory("join tokens", of.elements, work.autocast ? 8 : 4);
  return pieces;
}

void windows(const PieceWriter& w, double elements) {
  if (w.work.windows > 1) w.memory("windows", elements, w.work.autocast ? 18 : 12, 3);
}

void drop_path(const PieceWriter& w, double elements) {
  if (w.work.drop_path) w.memory("drop path", elements, 8, 2);
}

void heads_forward(const PieceWriter& w, double elements) {
  if (w.work.autocast) w.memory("heads", elements, 20, 5);
}

void heads_backward(const PieceWriter& w, double elements) {
  if (w.work.autocast) w.memory("heads", elements, 86, 11);
}

}  // namespace lambcast
