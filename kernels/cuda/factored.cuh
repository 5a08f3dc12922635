// Device code shared by factored.cu and factored_moments.cu: loops over the elements of a part,
// four at a time and loaded before their first use, with the factors from the thin moments.
#pragma once

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/factored.h"

namespace lambcast::cuda {

constexpr std::size_t stretch_elements = 8192;  // elements of a segment, for elementwise kernels

// Rows and columns that a block sums at a time.
constexpr std::size_t part_rows = 256;
constexpr std::size_t tile_columns = 32 * 4;  // a quad for each lane

// Number of rows, or of columns, in a piece of the thin vectors. The sum of a column has more
// addends.
constexpr std::size_t slot_rows = threads, slot_columns = 32;

__host__ __device__ inline std::size_t ceil_div(std::size_t a, std::size_t b) {
  return (a + b - 1) / b;
}

__device__ inline double elements_of(const FactoredTensor& a) {
  return static_cast<double>(a.part.whole.rows) * static_cast<double>(a.part.whole.columns);
}

// Returns f(), which thread 0 computes in double for its whole block.
template <typename F>
__device__ float block_value(F f) {
  __shared__ float result;
  __syncthreads();
  if (threadIdx.x == 0) result = static_cast<float>(f());
  __syncthreads();
  return result;
}

__device__ inline bool matrix(const FactoredTensor& a) { return a.part.whole.rows > 1; }

// Four aligned elements that all belong to the part, in single accesses of 16 bytes.
struct WholeQuad {
  __device__ static bool has(int) { return true; }
  __device__ static Quad load(const float* x, std::size_t k) { return load_quad(x, k, k + 4); }
  __device__ static void store(float* x, std::size_t k, const Quad& q) {
    store_quad(x, k, k + 4, q);
  }
};
// Four elements of which some belong to the part, in buffers of any alignment; the others read as
// 0.
struct PartQuad {
  unsigned own;

  __device__ bool has(int i) const { return (own >> i) & 1; }
  __device__ Quad load(const float* x, std::size_t k) const {
    Quad q{};
    for (int i = 0; i < 4; ++i) q.at[i] = has(i) ? x[k + i] : 0.0f;
    return q;
  }
  __device__ void store(float* x, std::size_t k, const Quad& q) const {
    for (int i = 0; i < 4; ++i)
      if (has(i)) x[k + i] = q.at[i];
  }
};

// Returns f(i) for each of the four elements; 0 for those outside the part.
template <typename Access, typename F>
__device__ Quad each_of(const Access& access, F f) {
  Quad q{};
  for (int i = 0; i < 4; ++i) q.at[i] = access.has(i) ? f(i) : 0.0f;
  return q;
}

// 1 / sqrt of the thin moment's rows, which must be multiplied by `scale`, and of its columns, both
// from the start of the rectangle on.
struct InverseRoots {
  const float* row;
  const float* column;
  float scale;
};
__device__ inline InverseRoots inverse_roots(const FactoredTensor& a, const FactoredRectangle& r,
                                             const FactoredState& s) {
  const float* const column = reinterpret_cast<const float*>(a.workspace + r.roots);
  return {column + a.part.whole.columns + a.part.first_row, column + a.part.first_column,
          sqrtf(*s.row_mean)};
}

constexpr std::size_t quad_step = 4 * threads;  // distance of a thread's quads in a segment
__device__ inline std::size_t first_quad(const TensorPiece& piece) {
  return static_cast<std::size_t>(piece.index) * stretch_elements + 4 * threadIdx.x;
}

// Factors from a matrix's moment for a thread's quads of a segment, in order. The row and column of
// the first quad take a 64-bit division, those of each further quad an addition.
class RootsOfMatrix {
 public:
  __device__ RootsOfMatrix(const FactoredTensor& a, const FactoredRectangle& r,
                           const FactoredState& s, const TensorPiece& piece)
      : quads_in_rows_(r.quads_in_rows),
        row_step_(static_cast<unsigned>(quad_step / r.columns)),
        column_step_(static_cast<unsigned>(quad_step % r.columns)),
        columns_(r.columns) {
    const InverseRoots roots = inverse_roots(a, r, s);
    const std::size_t e = a.part.begin + first_quad(piece);
    scale_ = roots.scale;
    row_ = roots.row + e / columns_;
    column_ = roots.column + e % columns_;
    end_ = roots.column + columns_;
  }

  template <typename Access>
  __device__ Quad next(const Access& access, std::size_t, const Quad&) {
    Quad by{};
    if (quads_in_rows_) {
      const float row = __ldg(row_) * scale_;
      const float4 c = __ldg(reinterpret_cast<const float4*>(column_));
      by = {{row * c.x, row * c.y, row * c.z, row * c.w}};
    } else {
      const float *row = row_, *column = column_;
      for (int i = 0; i < 4; ++i) {
        if (access.has(i)) by.at[i] = __ldg(row) * scale_ * __ldg(column);
        if (++column == end_) column -= columns_, ++row;
      }
    }
    row_ += row_step_;
    column_ += column_step_;
    if (column_ >= end_) column_ -= columns_, ++row_;
    return by;
  }

 private:
  bool quads_in_rows_;
  unsigned row_step_, column_step_;
  std::size_t columns_;
  float scale_;
  const float *row_, *column_, *end_;
};

// Factors from a vector's own moment v, which is updated first if `beta` is not negative.
struct RootsOfVector {
  float* v;
  float beta = -1, one_minus_beta = 0, eps1 = 0;

  template <typename Access>
  __device__ Quad next(const Access& access, std::size_t k, const Quad& g) const {
    Quad x = access.load(v, k);
    if (beta >= 0) {
      for (int i = 0; i < 4; ++i)
        x.at[i] = beta * x.at[i] + one_minus_beta * (g.at[i] * g.at[i] + eps1);
      access.store(v, k, x);
    }
    return each_of(access, [&](int i) { return 1 / sqrtf(x.at[i]); });
  }
};
struct NoRoots {
  template <typename Access>
  __device__ static Quad next(const Access&, std::size_t, const Quad&) {
    return {{1, 1, 1, 1}};
  }
};

// Calls f(access, k, load(access, k)) for this thread's quads of a segment, of which `ahead` are
// loaded at once.
template <int ahead, typename Load, typename F>
__device__ void for_each_quad_of(const FactoredTensor& a, const FactoredRectangle& r,
                                 const TensorPiece& piece, Load load, F f) {
  const std::size_t begin = static_cast<std::size_t>(piece.index) * stretch_elements;
  const std::size_t end = min(begin + stretch_elements, a.part.end - a.part.begin);
  std::size_t k = first_quad(piece);
  const WholeQuad whole;
  for (; r.aligned && k + (ahead - 1) * quad_step + 4 <= end; k += ahead * quad_step) {
    decltype(load(whole, k)) loaded[ahead];
    for (int n = 0; n < ahead; ++n) loaded[n] = load(whole, k + n * quad_step);
    for (int n = 0; n < ahead; ++n) f(whole, k + n * quad_step, loaded[n]);
  }
  for (; k < end; k += quad_step) {
    const PartQuad part{(1u << quad_part(k, end)) - 1};
    f(part, k, load(part, k));
  }
}

// Adds a matrix's sums over all ranks to the moment, or to CAME's residual.
cudaError_t absorb(const FactoredBatch& batch, bool residual, double beta, cudaStream_t stream);

// Sums g^2 + eps over rows and columns.
cudaError_t sum_squared_gradient(const FactoredBatch& batch, double eps, cudaStream_t stream);

}  // namespace lambcast::cuda
