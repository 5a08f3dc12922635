// Exchange kernels, and optimizers in two halves with a sum over ranks in between, for the
// profiler. They use the buffers of the workbench (kernels.h).
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/cuda/device_buffer.h"
#include "kernels/cuda/galore.h"
#include "kernels/cuda/lamb.h"
#include "kernels/cuda/low_rank.h"
#include "kernels/cuda/quantisation.h"
#include "kernels/cuda/sparse.h"
#include "kernels/cuda/top_k.h"
#include "kernels/profile/kernels.h"

namespace lambcast::cuda {

class ExchangeBench {
 public:
  // Buffers of `elements` floats each: gradients, error feedback, and memory for results.
  struct Buffers {
    float* gradient = nullptr;
    float* owed = nullptr;
    float* out = nullptr;
    float* other = nullptr;
    std::size_t elements = 0;
  };
  explicit ExchangeBench(const Buffers& buffers);

  cudaError_t refill(cudaStream_t stream) const;
  std::vector<Workbench::Entry> entries() const;
  // Returns the halves of LAMB, LARS and GaLore, on the weights of the workbench.
  std::vector<Workbench::Entry> halves(const LambState& state, const float* gradient) const;

  static std::size_t bytes(std::size_t elements);

 private:
  cudaError_t quantise_to(const Quantiser& quantiser, bool owed, cudaStream_t stream) const;
  cudaError_t sum_from(const Quantiser& quantiser, int messages, cudaStream_t stream) const;
  LowRank matrix(int rank) const;
  GaloreTensors projected(const LambState& state) const;
  SparseMessage kept() const { return {indices_.data(), values_.data(), indices_.size()}; }

  Buffers of_;
  reference::MatrixShape shape_;
  DeviceBuffer<std::uint8_t> payload_;
  DeviceBuffer<float> scales_, p_, q_, values_;
  DeviceBuffer<std::uint32_t> indices_;
  DeviceBuffer<double> reduction_, search_, products_, squares_;
};

}  // namespace lambcast::cuda
