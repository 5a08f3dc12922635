#include "kernels/cuda/galore.h"

#include <algorithm>

#include "kernels/cuda/low_rank.cuh"
#include "kernels/cuda/tensor_pieces.cuh"

namespace lambcast::cuda {
namespace {

// What a block takes at a time, of whole rows where it projects.
constexpr std::size_t galore_stretch = 8192;

struct GaloreConstants {
  float lr, back, decay;
};

// Directions are on the shorter side.
__host__ __device__ bool right_sided(const GaloreTensor& a) {
  return a.shape.rows >= a.shape.columns;
}
__host__ __device__ std::size_t rows_of_stretch(const GaloreTensor& a) {
  return a.shape.columns < galore_stretch ? galore_stretch / a.shape.columns : 1;
}
__device__ RowRange rows_of(const GaloreTensor& a, const TensorPiece& piece) {
  const std::size_t rows = rows_of_stretch(a), first = piece.index * rows;
  return {first, min(first + rows, a.shape.rows)};
}

std::size_t ceil_of(std::size_t a, std::size_t b) { return (a + b - 1) / b; }
std::size_t stretches_of_weights(const GaloreTensor& a) {
  if (a.shape.elements() == 0) return 0;
  return a.rank > 0 ? ceil_of(a.shape.rows, rows_of_stretch(a))
                    : ceil_of(a.shape.elements(), galore_stretch);
}
std::size_t products_of(const GaloreTensor& a) {
  if (a.rank == 0) return 0;
  return right_sided(a) ? stretches_of_weights(a) : column_tiles_of(a.shape.columns);
}

__global__ void __launch_bounds__(threads) galore_project_kernel(const GaloreBatch batch) {
  for (int k = blockIdx.x; k < batch.products.count; k += gridDim.x) {
    const TensorPiece piece = batch.products.at[k];
    const GaloreTensor a = batch.tensors[piece.tensor];
    const std::size_t columns = a.shape.columns;
    if (right_sided(a)) {
      const RowRange rows = rows_of(a, piece);
      for (std::size_t i = rows.begin; i < rows.end; ++i) {
        project_row(i, columns, a.rank, a.basis, a.low,
                    [&a](std::size_t e, bool) { return a.g[e]; });
      }
    } else {
      back_project_columns(piece.index, {0, a.shape.rows}, columns, a.rank, a.g, a.basis,
                           [&](std::size_t j, int d, double sum) {
                             a.low[d * columns + j] = static_cast<float>(sum);
                           });
    }
  }
}

__device__ void move_weight(const GaloreTensor& a, const GaloreConstants& c, std::size_t e,
                            float move) {
  float p = a.p[e] - move;
  p -= c.decay * p;
  a.p[e] = p;
  store_quad(a.half_p, e, e + 1, {p});
}

__device__ void move_rows(const GaloreTensor& a, const GaloreConstants& c, const RowRange& rows) {
  const std::size_t columns = a.shape.columns, rank = a.rank;
  const bool right = right_sided(a);
  const std::size_t from_column = right ? rank : 1, stride = right ? 1 : columns;
  for (std::size_t i = rows.begin; i < rows.end; ++i) {
    const float* const of_row = (right ? a.low : a.basis) + i * rank;
    for (std::size_t j = threadIdx.x; j < columns; j += threads) {
      const float* const of_column = (right ? a.basis : a.low) + j * from_column;
      float move = 0;
      for (std::size_t d = 0; d < rank; ++d) move += of_row[d] * of_column[d * stride];
      move_weight(a, c, i * columns + j, move * c.back);
    }
  }
}

__global__ void __launch_bounds__(threads)
    galore_apply_kernel(const GaloreBatch batch, const GaloreConstants c) {
  for (int k = blockIdx.x; k < batch.stretches.count; k += gridDim.x) {
    const TensorPiece piece = batch.stretches.at[k];
    const GaloreTensor a = batch.tensors[piece.tensor];
    if (a.rank > 0) {
      move_rows(a, c, rows_of(a, piece));
      continue;
    }
    const std::size_t begin = piece.index * galore_stretch;
    const std::size_t end = min(begin + galore_stretch, a.shape.rows * a.shape.columns);
    for (std::size_t e = begin + threadIdx.x; e < end; e += threads) {
      move_weight(a, c, e, c.lr * a.low[e]);
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
