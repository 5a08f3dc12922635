// A step of Muon for one matrix on the GPU, as reference/muon.h defines it, with bf16 between the
// products of the Newton-Schulz iterations. cuBLAS, which the first object loads, computes them:
// three in each iteration, 4 n^2 m + 2 n^3 FLOPs for a matrix of n x m elements, n <= m.
//
// Bytes per element, without the products: momentum 14 (read g, m; write m and the direction in 16
// bits), norm 2, division 4, weights 10; a 16-bit gradient saves 2, a 16-bit copy of the weights
// adds 2. Each iteration also copies X (4) and A (4 n / m), since cuBLAS adds to its output in
// place.
//
// The momentum has the reference's bits. cuBLAS sums products in another order, so the update may
// differ in digits of bf16. Tested on the emulated device, not run on a GPU yet.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/device_buffer.h"
#include "kernels/cuda/gradient_view.h"
#include "kernels/reference/muon.h"

namespace lambcast::cuda {

class MuonStep {
 public:
  // Allocates 4 n m + 4 n^2 bytes on the current device. Throws Error{Exit::missing} if there is no
  // cuBLAS, and Error{Exit::usage} for a vector or iterations that are not in bf16.
  MuonStep(reference::MatrixShape shape, const reference::MuonOptions& options);
  ~MuonStep();
  MuonStep(const MuonStep&) = delete;
  MuonStep& operator=(const MuonStep&) = delete;

  // Updates the momentum m and the weights p, row by row in device memory and aligned to 16 bytes.
  // Throws Error{Exit::failure} naming the call that failed.
  void step(float* p, float* m, const Gradient& g, HalfPointer half_p, cudaStream_t stream);

 private:
  void iterate(cudaStream_t stream);

  reference::MatrixShape shape_;
  reference::MuonOptions options_;
  void* handle_ = nullptr;
  DeviceBuffer<std::uint16_t> x_, next_x_, gram_, factor_;  // bf16
  DeviceBuffer<double> squared_norm_, workspace_;
};

}  // namespace lambcast::cuda
