// The basis of GaLore on the GPU: the leading singular directions of a gradient as defined in
// reference/galore.h. They are eigenvectors of G'G or GG', whichever is smaller, each with a
// positive largest component. Products are in single precision, summed in pairs of floats; the
// eigenvectors are computed by cuSOLVER, which the first object loads.
//
// The products of a matrix with `side` rows or columns, whichever are fewer, and `inner` of the
// other take 2 side^2 inner operations. cuSOLVER takes some 8 side^3 more and may wait for the
// stream. This is needed once in every gap of steps.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/cuda/device_buffer.h"
#include "kernels/reference/low_rank.h"

namespace lambcast::cuda {

class SingularDirections {
 public:
  // Allocates 4 side^2 bytes and the workspace of cuSOLVER on the current device. Throws
  // Error{Exit::missing} if there is no cuSOLVER and Error{Exit::usage} for a rank outside 1 to
  // side.
  SingularDirections(std::size_t side, int rank);
  ~SingularDirections();
  SingularDirections(const SingularDirections&) = delete;
  SingularDirections& operator=(const SingularDirections&) = delete;

  // Writes the basis, side x rank, row by row, of a matrix with smaller dimension `side`. If the
  // gradient is not finite, or cuSOLVER does not converge, the basis is not changed. Throws
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
