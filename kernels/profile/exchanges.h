// The kernels of exchanges, and optimizers in halves with a sum over ranks between, as something to
// be timed: beside the workbench's own (kernels.h), on its buffers.
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
  // Of `elements` floats each: gradients, what is owed, and room for what comes out.
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
  // Of LAMB, LARS and GaLore, whose weights are the workbench's.
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
