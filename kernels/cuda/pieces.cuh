// Device code of kernels over all tensors of flat buffers at once: blocks share the pieces
// (lamb.h), and sums use three slots per piece.
#pragma once

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/lamb.h"

namespace lambcast::cuda {

// A tensor has few pieces to sum: BERT-Large's largest has two thousand, most have one.
constexpr int tensor_threads = 128;

// Calls f(element, width) for every element of the piece: quads (width 4) if aligned, single
// elements (width 1) at the unaligned ends of a tensor.
template <typename F>
__device__ void for_each(const Piece& piece, F f) {
  const std::size_t body = min((piece.begin + 3) & ~std::size_t{3}, piece.end);
  const std::size_t tail = max(piece.end & ~std::size_t{3}, body);
  for (std::size_t e = body + 4 * threadIdx.x; e < tail; e += 4 * threads) f(e, 4);
  const std::size_t head_size = body - piece.begin, tail_size = piece.end - tail;
  if (threadIdx.x < head_size)
    f(piece.begin + threadIdx.x, 1);
  else if (threadIdx.x - head_size < tail_size)
    f(tail + threadIdx.x - head_size, 1);
}

// Reads elements e .. e + width; the quad helpers use the end as their limit.
template <typename T>
__device__ Quad read(const T* x, std::size_t e, int width) {
  return load_quad(x, e, e + width);
}

// Returns the sum of one slot over the pieces of tensor t, in thread 0.
__device__ inline double tensor_sum(const int* first_piece, const double* slots, int t, int slot) {
  double sum = 0;
  for (int k = first_piece[t] + threadIdx.x; k < first_piece[t + 1]; k += blockDim.x) {
    sum += slots[3 * k + slot];
  }
  return block_sum(sum);
}

}  // namespace lambcast::cuda
