// Time of one matrix product: C (m x n) = A (m x k) B (k x n), `batch` of them in one call.
//
//   time = max(compute, memory) + kernel_start
//   memory  = (m k + k n) in + m n out bytes per product, over the memory bandwidth
//   compute = minimum over tiles and splits of
//             waves x 2 tile_m tile_n (k / splits + ramp) / (reached / multiprocessors x tile
//             share) (for unaligned rows the ramp keeps the aligned rate)
//   waves   = ceil(ceil(m / tile_m) ceil(n / tile_n) batch splits / multiprocessors)
//
//   reached   peak of the format x share, GpuRates
//   tiles     256x128, 128x256, 128x128, 128x64, 64x128, 64x64: a small tile reads more per
//             operation and reaches less of the peak (tile share), but wastes less of a small
//             product
//   splits    1, 2, 4, 8 blocks along k for one tile of C, summed through memory: for weight
//             gradients with a long k
//   ramp      512 bytes of k: a block fills its pipeline before and writes its tile after
//
// fp32 data on a GPU without TF32 (Volta, Turing) are multiplied outside the matrix units, at an
// eighth of their rate. The operands of all tiles then arrive in time: each tile reaches the whole
// rate, and the ramp is one step of k, 64 bytes. DeepBench's fp32 products on a V100 support this
// (validate/compute/kernel_shapes_test.cc): median error 4 %, compared with 15 % with the shares
// and the ramp of matrix units.
//
// k is rounded up to 64 bytes. The time never decreases if m, n, k or batch grow with the others
// unchanged: no tile's time does, hence neither does their minimum. The time is not smooth: one
// tile more than a full wave costs another wave. It is not monotone in alignment: rows whose length
// is no multiple of 16 bytes are loaded in pieces (`aligned_rows`), so a head of 112 elements is
// faster than one of 108. An unaligned single product reaches half the rate (assumed: GPT-2's
// vocabulary of 50257 instead of 50304 costs a quarter of a step). Unaligned batched products run
// outside the matrix units (fitted: 162.7 s with heads of 108 elements and 121.3 s with heads of
// 216, bigscience-workshop tr11-176B-ml chronicles-prequel, set A, give 11 TFLOP/s of an A100, 60 %
// of its fp32 peak; set B's pair gives 12).
//
// Tile shares and the ramp are assumed, the same for every GPU, format and shape. Left out: blocks
// that go on to the next tile without draining.
//
// Source: NVIDIA, Matrix Multiplication Background User's Guide (tiles, waves, alignment).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>

#include "models/device/gpu_rates.h"

namespace lambcast {

struct Product {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t batch = 1;
  MatrixFormat format = MatrixFormat::half;
  double output_bytes = 2;  // bytes per element of C; 8 if added to existing fp32 gradients
  bool aligned_rows = true;
  double share = 1;                 // share of the rate of a single product of this size
  std::optional<Bytes> moved = {};  // bytes read and written; absent: A, B and C once each
};

// Returns whether rows of these lengths are multiples of 16 bytes.
bool rows_aligned(MatrixFormat format, std::initializer_list<std::int64_t> lengths);

// Returns whether fp32 data are multiplied outside the matrix units (Volta and Turing, without
// TF32).
bool outside_matrix_units(MatrixFormat format, const GpuRates& rates);

// Returns the cost of a product; zero if a size is zero.
KernelCost product_cost(const Product& product, const GpuRates& rates);

}  // namespace lambcast
