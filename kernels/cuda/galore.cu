#include "kernels/cuda/galore.h"

#include <algorithm>

#include "kernels/cuda/matrix_tiles.cuh"
#include "kernels/cuda/tensor_pieces.cuh"

namespace lambcast::cuda {
namespace {

// Elements that a block takes at a time from a tensor without projection.
constexpr std::size_t galore_stretch = 8192;

struct GaloreConstants {
  float lr, back, decay;
};

// Whether the basis is on the right: directions are on the shorter side.
__host__ __device__ bool right_sided(const GaloreTensor& a) {
  return a.shape.rows >= a.shape.columns;
}

__host__ __device__ std::size_t ceil_of(std::size_t a, std::size_t b) { return (a + b - 1) / b; }
// Returns the number of 128 x 64 tiles in a row of tiles. Tiles are numbered row by row.
__host__ __device__ std::size_t tiles_across(std::size_t columns) {
  return ceil_of(columns, product_columns);
}
std::size_t tiles_of(std::size_t rows, std::size_t columns) {
  return ceil_of(rows, product_rows) * tiles_across(columns);
}
std::size_t stretches_of_weights(const GaloreTensor& a) {
  if (a.shape.elements() == 0) return 0;
  return a.rank > 0 ? tiles_of(a.shape.rows, a.shape.columns)
                    : ceil_of(a.shape.elements(), galore_stretch);
}
std::size_t products_of(const GaloreTensor& a) {
  return a.rank == 0 ? 0 : tiles_of(std::max(a.shape.rows, a.shape.columns), a.rank);
}

__device__ void store_part(float* line, std::size_t e, std::size_t length, bool whole,
                           const Quad& q) {
  if (whole && e + 4 <= length) return store_quad(line, e, e + 4, q);
  for (int i = 0; i < 4 && e + i < length; ++i) line[e + i] = q.at[i];
}

// Computes R, or R' if the basis is on the left: the rows are those of the longer side, the columns
// are directions.
__global__ void __launch_bounds__(threads, 2) galore_project_kernel(const GaloreBatch batch) {
  for (int k = blockIdx.x; k < batch.products.count; k += gridDim.x) {
    const TensorPiece piece = batch.products.at[k];
    const GaloreTensor a = batch.tensors[piece.tensor];
    const bool right = right_sided(a);
    const unsigned columns = a.shape.columns, rank = a.rank;
    const unsigned longer = right ? a.shape.rows : columns,
                   shorter = right ? columns : a.shape.rows;
    const unsigned across = tiles_across(rank);
    const unsigned row = piece.index / across * product_rows,
                   direction = piece.index % across * product_columns;
    Sums sums = {};
    multiply_tile<InSixteens>({a.g, columns, longer, shorter, right},
                              {a.basis, rank, rank, shorter, false}, row, direction, sums);
    const std::size_t d = direction + column_of_tile();
    const bool whole = begins_quads(a.low, right ? rank : columns);
    for (int r = 0; right && r < rows_of_thread; ++r) {
      const std::size_t i = row + row_of_tile(r);
      const float* const s = sums[r];
      if (i < longer) store_part(a.low + i * rank, d, rank, whole, {s[0], s[1], s[2], s[3]});
    }
    for (int c = 0; !right && c < columns_of_thread; ++c) {
      for (int r = 0; r < rows_of_thread && d + c < rank; r += 4) {
        store_part(a.low + (d + c) * columns, row + row_of_tile(r), columns, whole,
                   {sums[r][c], sums[r + 1][c], sums[r + 2][c], sums[r + 3][c]});
      }
    }
  }
}

__device__ float moved(const GaloreConstants& c, float p, float move) {
  p -= move;
  p -= c.decay * p;
  return p;
}

// Moves a thread's rows in a tile of weights. All rows are loaded before the first one is moved.
__device__ void move_tile(const GaloreTensor& a, const GaloreConstants& c, std::size_t row,
                          std::size_t column, const Sums& sums) {
  const std::size_t columns = a.shape.columns, j = column + column_of_tile();
  const bool whole = j + 4 <= columns && begins_quads(a.p, columns) &&
                     reinterpret_cast<std::uintptr_t>(a.half_p.bits) % 8 == 0;
  Quad p[rows_of_thread];
  for (int r = 0; r < rows_of_thread; ++r) {
    const std::size_t i = row + row_of_tile(r), e = i * columns + j;
    p[r] = {};
    if (i >= a.shape.rows) continue;
    if (whole) p[r] = load_quad(a.p, e, e + 4);
    for (int s = 0; !whole && s < 4; ++s)
      if (j + s < columns) p[r].at[s] = a.p[e + s];
  }
  for (int r = 0; r < rows_of_thread; ++r) {
    const std::size_t i = row + row_of_tile(r), e = i * columns + j;
    for (int s = 0; s < 4; ++s) p[r].at[s] = moved(c, p[r].at[s], sums[r][s] * c.back);
    if (i >= a.shape.rows) continue;
    if (whole) {
      store_quad(a.p, e, e + 4, p[r]);
      store_quad(a.half_p, e, e + 4, p[r]);
    }
    for (int s = 0; !whole && s < 4 && j + s < columns; ++s) {
      a.p[e + s] = p[r].at[s];
      store_quad(a.half_p, e + s, e + s + 1, {p[r].at[s]});
    }
  }
}

__global__ void __launch_bounds__(threads, 2)
    galore_apply_kernel(const GaloreBatch batch, const GaloreConstants c) {
  for (int k = blockIdx.x; k < batch.stretches.count; k += gridDim.x) {
    const TensorPiece piece = batch.stretches.at[k];
    const GaloreTensor a = batch.tensors[piece.tensor];
    const unsigned rows = a.shape.rows, columns = a.shape.columns, rank = a.rank;
    if (rank > 0) {
      const bool right = right_sided(a);
      const unsigned across = tiles_across(columns);
      const unsigned row = piece.index / across * product_rows,
                     column = piece.index % across * product_columns;
      Sums sums = {};
      multiply_tile<InOrder>(
          {right ? a.low : a.basis, rank, rows, rank, true},
          {right ? a.basis : a.low, right ? rank : columns, columns, rank, right}, row, column,
          sums);
      move_tile(a, c, row, column, sums);
      continue;
    }
    const std::size_t begin = piece.index * galore_stretch;
    const std::size_t end = min(begin + galore_stretch, a.shape.rows * a.shape.columns);
    for (std::size_t e = begin + threadIdx.x; e < end; e += threads) {
      const float p = moved(c, a.p[e], c.lr * a.low[e]);
      a.p[e] = p;
      store_quad(a.half_p, e, e + 1, {p});
    }
  }
}

}  // namespace

GaloreTensors::GaloreTensors(std::span<const GaloreTensor> tensors)
    : tensors_(tensors),
      products_(pieces_of(tensors, products_of)),
      stretches_(pieces_of(tensors, stretches_of_weights)) {}

GaloreBatch GaloreTensors::batch() const {
  return {
      .tensors = tensors_.data(), .products = list_of(products_), .stretches = list_of(stretches_)};
}

cudaError_t galore_project(const GaloreBatch& batch, cudaStream_t stream) {
  return launch_over(batch.products, galore_project_kernel, stream, batch);
}

cudaError_t galore_apply(const GaloreBatch& batch, const reference::GaloreOptions& o,
                         cudaStream_t stream) {
  const GaloreConstants c{static_cast<float>(o.lr), static_cast<float>(o.lr * o.scale),
                          static_cast<float>(o.lr * o.weight_decay)};
  return launch_over(batch.stretches, galore_apply_kernel, stream, batch, c);
}

}  // namespace lambcast::cuda
