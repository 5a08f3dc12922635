// Exchanges of flat buffers whose tensors are sent separately with their own scales, as in 1-bit
// Adam and 0/1 Adam. A tensor must begin at a multiple of four elements; an empty one is not sent.
#pragma once

#include <span>
#include <vector>

#include "kernels/nccl/compressed_allreduce.h"

namespace lambcast::cuda {

class TensorExchanges {
 public:
  // Allocates on the current device.
  TensorExchanges(const TensorLayout& tensors, int ranks, int rank, Padding padding);

  std::span<CompressedAllreduce> all() { return exchanges_; }
  // Runs the worker phases. x and the gradient of `input`, if given, are whole buffers.
  cudaError_t compress(const WorkerPhase& input, cudaStream_t stream);
  // Returns the average of the whole buffer over the ranks; `mask` may be null.
  PackedAverage average(const float* mask) const;
  cudaError_t forget_errors(cudaStream_t stream);

  template <typename Self, typename Visit>
  static void each_state(Self& self, Visit& visit) {
    for (auto& exchange : self.exchanges_) CompressedAllreduce::each_state(exchange, visit);
  }

 private:
  std::vector<std::size_t> starts_;
  std::vector<CompressedAllreduce> exchanges_;
  DeviceBuffer<PackedRun> runs_;
};

}  // namespace lambcast::cuda
