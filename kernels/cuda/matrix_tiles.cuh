// Device code of a product of two matrices of any sizes: one tile of 128 x 64 per block, 8 x 4 of
// it in the registers of each thread, and 16 of the sum's products at a time in shared memory.
// Elements outside the matrices are 0. An entry has the same bits wherever its tile is computed.
#pragma once

#include "kernels/cuda/device.cuh"

namespace lambcast::cuda {

constexpr unsigned product_rows = 128, product_columns = 64;
constexpr unsigned product_depth = 16;
constexpr int rows_of_thread = 8, columns_of_thread = 4;

// A factor of the product, in lines of memory that are `stride` apart. The lines are rows of the
// product (for the second factor columns), or positions of the sum.
struct Factor {
  const float* data;
  std::size_t stride;
  unsigned rows, depth;
  bool lines_are_rows;
};

// Whether the lines of this matrix begin at aligned quads.
__device__ inline bool begins_quads(const float* data, std::size_t stride) {
  return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && stride % 4 == 0;
}

// Loads a thread's share of `width` rows of a factor into shared memory, 16 positions of the sum at
// a time.
template <unsigned width>
class FactorTile {
 public:
  using Shared = float[product_depth][width + 4];  // transposed; at most two stores share a bank

  __device__ FactorTile(const Factor& of, unsigned first_row)
      : of_(of),
        row_(first_row),
        whole_(begins_quads(of.data, of.stride) && first_row + width <= of.rows) {
    const unsigned of_line = (of.lines_are_rows ? product_depth : width) / 4;
    along_ = threadIdx.x % of_line * 4;
    line_ = threadIdx.x / of_line;
    lines_ = threads / of_line;
    next_ = of.data + (of.lines_are_rows ? std::size_t{first_row + line_} * of.stride + along_
                                         : std::size_t{line_} * of.stride + first_row + along_);
  }

  // Loads the positions of the sum from `place` on. Each call continues at the end of the previous
  // one.
  __device__ void load(unsigned place) {
    if (whole_ && place + product_depth <= of_.depth) {
      for (unsigned q = 0; q < quads; ++q) {
        const float4 v = __ldg(reinterpret_cast<const float4*>(next_ + q * lines_ * of_.stride));
        at_[q] = {{v.x, v.y, v.z, v.w}};
      }
    } else {
      load_edge(place);
    }
    next_ += of_.lines_are_rows ? product_depth : product_depth * of_.stride;
  }

  __device__ void store(Shared& to) const {
    for (unsigned q = 0; q < quads; ++q) {
      const unsigned line = line_ + q * lines_;
      const Quad& v = at_[q];
      if (of_.lines_are_rows)
        for (int i = 0; i < 4; ++i) to[along_ + i][line] = v.at[i];
      else
        *reinterpret_cast<float4*>(&to[line][along_]) =
            make_float4(v.at[0], v.at[1], v.at[2], v.at[3]);
    }
  }

 private:
  static constexpr unsigned quads = width * product_depth / 4 / threads;

  __device__ void load_edge(unsigned place) {
    const bool rows = of_.lines_are_rows;
    const unsigned along = (rows ? place : row_) + along_, length = rows ? of_.depth : of_.rows;
    const unsigned line = (rows ? row_ : place) + line_, end = rows ? of_.rows : of_.depth;
    for (unsigned q = 0; q < quads; ++q)
      for (int i = 0; i < 4; ++i) {
        const bool is = line + q * lines_ < end && along + i < length;
        at_[q].at[i] = is ? next_[q * lines_ * of_.stride + i] : 0.0f;
      }
  }

  Factor of_;
  unsigned row_;
  bool whole_;
  unsigned along_, line_,
      lines_;  // the first quad's position in its line, its line, and the distance to the next line
  const float* next_;
  Quad at_[quads];
};
using RowsTile = FactorTile<product_rows>;
using ColumnsTile = FactorTile<product_columns>;

__device__ inline Quad shared_quad(const float* at) {
  const float4 v = *reinterpret_cast<const float4*>(at);
  return {{v.x, v.y, v.z, v.w}};
}

// A warp has 32 x 32 of a tile; each thread has two quads of rows, 16 apart, and one quad of
// columns.
__device__ inline unsigned row_of_tile(int r) {
  return threadIdx.x / 64 * 32 + r / 4 * 16 + threadIdx.x % 32 / 8 * 4 + r % 4;
}
__device__ inline unsigned column_of_tile() {
  return threadIdx.x / 32 % 2 * 32 + threadIdx.x % 8 * 4;
}

// A thread's share of a tile.
using Sums = float[rows_of_thread][columns_of_thread];

// Adds products one after another, each rounded separately: the bits of a plain loop.
struct InOrder {
  __device__ static void add(const RowsTile::Shared& a, const ColumnsTile::Shared& b, Sums& sums) {
    for (unsigned k = 0; k < product_depth; ++k) {
      const Quad x[] = {shared_quad(&a[k][row_of_tile(0)]), shared_quad(&a[k][row_of_tile(4)])};
      const Quad y = shared_quad(&b[k][column_of_tile()]);
      for (int r = 0; r < rows_of_thread; ++r)
        for (int c = 0; c < columns_of_thread; ++c) sums[r][c] += x[r / 4].at[r % 4] * y.at[c];
    }
  }
};
// Adds 16 fused products, then these sums: an entry of n products is within (16 + n / 16) 2^-24 of
// the sum of their magnitudes.
struct InSixteens {
  __device__ static void add(const RowsTile::Shared& a, const ColumnsTile::Shared& b, Sums& sums) {
    Sums of_these = {};
    for (unsigned k = 0; k < product_depth; ++k) {
      const Quad x[] = {shared_quad(&a[k][row_of_tile(0)]), shared_quad(&a[k][row_of_tile(4)])};
      const Quad y = shared_quad(&b[k][column_of_tile()]);
      for (int r = 0; r < rows_of_thread; ++r)
        for (int c = 0; c < columns_of_thread; ++c)
          of_these[r][c] = fmaf(x[r / 4].at[r % 4], y.at[c], of_these[r][c]);
    }
    for (int r = 0; r < rows_of_thread; ++r)
      for (int c = 0; c < columns_of_thread; ++c) sums[r][c] += of_these[r][c];
  }
};

// Computes the tile of A B that begins at this row and column. The next positions of the sum are
// loaded while the current ones are multiplied. Two tiles of each factor alternate, so that one
// barrier is enough.
template <typename How>
__device__ void multiply_tile(const Factor& a, const Factor& b, unsigned row, unsigned column,
                              Sums& sums) {
  alignas(16) __shared__ RowsTile::Shared shared_a[2];
  alignas(16) __shared__ ColumnsTile::Shared shared_b[2];
  RowsTile next_a(a, row);
  ColumnsTile next_b(b, column);
  next_a.load(0);
  next_b.load(0);
  __syncthreads();  // the previous product has been read
  int turn = 0;
  for (unsigned place = 0; place < a.depth; place += product_depth, turn ^= 1) {
    next_a.store(shared_a[turn]);
    next_b.store(shared_b[turn]);
    __syncthreads();
    if (place + product_depth < a.depth) {
      next_a.load(place + product_depth);
      next_b.load(place + product_depth);
    }
    How::add(shared_a[turn], shared_b[turn], sums);
  }
}

}  // namespace lambcast::cuda
