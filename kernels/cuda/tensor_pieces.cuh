// Launches of kernels whose blocks share the pieces of tensors (tensor_pieces.h).
#pragma once

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/tensor_pieces.h"

namespace lambcast::cuda {

// Launches kernel(batch, arguments...) with blocks for `pieces`, the pieces of the batch that it
// uses.
template <typename Kernel, typename Batch, typename... Arguments>
cudaError_t launch_over(const TensorPieces& pieces, Kernel kernel, cudaStream_t stream,
                        const Batch& batch, const Arguments&... arguments) {
  if (pieces.count == 0) return cudaSuccess;
  unsigned blocks = 0;
  if (const auto e = grid_size(kernel, pieces.count, blocks)) return e;
  launch(kernel, blocks, threads, stream, batch, arguments...);
  return cudaGetLastError();
}

}  // namespace lambcast::cuda
