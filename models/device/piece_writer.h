// Collects the kernels of one part and pass of a block (block_time.h) in order of execution.
#pragma once

#include "models/device/block_time.h"

namespace lambcast {

// Of the rate of one large product, what a grouped one reaches: its blocks look up where their
// expert begins and load another's weights. Published: 2,672 TFLOP/s in MXFP8 of a GB200 for
// experts of 7,168 x 2,048 (Megatron-LM docs/discussions/deepseek-v3-gb200-optimization), of about
// 3,350 that one large product reaches there (assumed).
inline constexpr double grouped_share = 0.8;

struct PieceWriter {
  const BlockWork& work;
  const GpuRates& rates;
  std::vector<Piece>& pieces;
  BlockPart part;
  Pass pass;

  // Costs of no duration are left out.
  void add(std::string_view name, PieceKind kind, const KernelCost& cost) const;
  // Bytes as in 16 bits.
  void memory(std::string_view name, double elements, double bytes_each, int kernels = 1) const;
  // Weight gradients of frozen weights are none.
  void product(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k,
               MatrixFormat format, bool aligned, bool weight_gradient = false) const;
  // `batch` products in one call.
  void grouped_product(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k,
                       std::int64_t batch, bool weight_gradient = false) const;
  bool is_frozen() const { return work.adapters && pass == Pass::weight_gradient; }
  // Writes a block's quantized matrix in 16 bits before its product (models/shape/adapters.h).
  void widen(double elements) const;
  // A factor in 16 bits becomes rows, and columns for a weight gradient, in 8, with its largest
  // element found on the way.
  void cast(double elements) const;
};

}  // namespace lambcast
