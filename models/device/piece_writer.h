// Collects the kernels of one part and pass of a block (block_time.h) in order of execution.
#pragma once

#include "models/device/block_time.h"

namespace lambcast {

// Rate of grouped products relative to one large product: their blocks look up the start of their
// expert and load other weights. Published: 2,672 TFLOP/s in MXFP8 on a GB200 for experts of 7,168
// x 2,048 (Megatron-LM docs/discussions/deepseek-v3-gb200-optimization), of about 3,350 that one
// large product reaches there (assumed).
inline constexpr double grouped_share = 0.8;

struct PieceWriter {
  const BlockWork& work;
  const GpuRates& rates;
  std::vector<Piece>& pieces;
  BlockPart part;
  Pass pass;

  // Adds a piece unless its duration is zero.
  void add(std::string_view name, PieceKind kind, const KernelCost& cost) const;
  // Adds a memory-bound piece; `bytes_each` are the bytes per element in 16 bits.
  void memory(std::string_view name, double elements, double bytes_each, int kernels = 1) const;
  // Adds a product, unless it is a weight gradient of frozen weights.
  void product(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k,
               MatrixFormat format, bool aligned, bool weight_gradient = false) const;
  // Adds `batch` products in one call.
  void grouped_product(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k,
                       std::int64_t batch, bool weight_gradient = false) const;
  bool is_frozen() const { return work.adapters && pass == Pass::weight_gradient; }
  // Adds a kernel that writes a block's quantized matrix in 16 bits before its product
  // (models/shape/adapters.h).
  void widen(double elements) const;
  // Adds a cast of a 16-bit operand to 8-bit rows, and to columns for a weight gradient, which also
  // finds its largest element.
  void cast(double elements) const;
};

}  // namespace lambcast
