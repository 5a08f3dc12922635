// The basis of GaLore on the GPU: the leading singular directions of a gradient as
// reference/galore.h defines them, eigenvectors of G'G or GG', whichever is smaller, of each the
// largest component positive. Products in single precision, summed in pairs of floats; the
// eigenvectors are cuSOLVER's, loaded by the first object.
//
// 2 side^2 inner operations for the products of a matrix of `side` rows or columns, whichever are
// fewer, and `inner` of the other; some 8 side^3 more are cuSOLVER's, which may wait for the
// stream: once every gap of steps.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/cuda/device_buffer.h"
#include "kernels/reference/low_rank.h"

namespace lambcast::cuda {

class SingularDirections {
 public:
  // Allocates on the current device, 4 side^2 bytes and the workspace of cuSOLVER. Throws
  // Error{Exit::missing} if there is no cuSOLVER and Error{Exit::usage} for a rank outside 1 to
  // side.
  SingularDirections(std::size_t side, int rank);
  ~SingularDirections();
  SingularDirections(const SingularDirections&) = delete;
  SingularDirections& operator=(const SingularDirections&) = delete;

  // basis: side x rank, row by row, of a matrix whose smaller dimension is `side`. Where the
  // gradient is not finite, or cuSOLVER does not converge, it is left as it is. Throws
  // Error{Exit::failure} naming the call that failed, Error{Exit::usage} for another side.
  void find(const float* gradient, reference::MatrixShape shape, float* basis, cudaStream_t stream);

 private:
  std::size_t side_;
  int rank_;
  void* handle_ = nullptr;
  DeviceBuffer<float> gram_, values_, workspace_;
  DeviceBuffer<int> unusable_, info_;
};

}  // namespace lambcast::cuda
