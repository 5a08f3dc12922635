#include "models/device/piece_writer.h"

#include "models/device/matrix_product.h"

namespace lambcast {

void PieceWriter::add(std::string_view name, PieceKind kind, const KernelCost& cost) const {
  if (cost.duration == Duration()) return;
  const double factor = rates.piece_factors[static_cast<std::size_t>(kind)];
  Piece& piece = pieces.emplace_back(
      Piece{name, kind, part, pass, cost.flops, cost.bytes, cost.duration, cost.rests_on});
  if (factor == 1) return;
  piece.duration = piece.duration.scaled(factor);
  for (Duration& time : piece.rests_on.of) time = time.scaled(factor);
}

void PieceWriter::memory(std::string_view name, double elements, double bytes_each,
                         int kernels) const {
  const double width = work.format == MatrixFormat::single ? 2 : 1;
  add(name, PieceKind::memory, memory_cost(Bytes(elements * bytes_each * width), kernels, rates));
}

void PieceWriter::product(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k,
                          MatrixFormat format, bool aligned, bool weight_gradient) const {
  if (is_frozen()) return;
  if (!weight_gradient) widen(static_cast<double>(n) * static_cast<double>(k));
  double output_bytes = format == MatrixFormat::single ? 4 : 2;
  if (weight_gradient && work.fp32_gradients) output_bytes = 8;
  add(name, PieceKind::product, product_cost({m, n, k, 1, format, output_bytes, aligned}, rates));
}

void PieceWriter::grouped_product(std::string_view name, std::int64_t m, std::int64_t n,
                                  std::int64_t k, std::int64_t batch, bool weight_gradient) const {
  if (is_frozen()) return;
  if (!weight_gradient)
    widen(static_cast<double>(batch) * static_cast<double>(n) * static_cast<double>(k));
  double output_bytes = work.format == MatrixFormat::single ? 4 : 2;
  if (weight_gradient && work.fp32_gradients) output_bytes = 8;
  const double share = batch > 1 ? grouped_share : 1;
  add(name, PieceKind::product,
      product_cost({m, n, k, batch, work.format, output_bytes, true, share}, rates));
}

void PieceWriter::widen(double elements) const {
  const bool in_block = part == BlockPart::attention || part == BlockPart::feed_forward;
  if (!in_block || !work.adapters || work.adapters->frozen_bits == 0) return;
  memory("dequantize", elements, 2 + work.adapters->frozen_bits / 8);
}

void PieceWriter::cast(double elements) const {
  if (work.format != MatrixFormat::single && work.format != MatrixFormat::half)
    memory("cast", elements, work.adapters ? 3 : 4);
}

}  // namespace lambcast
