#include "kernels/nccl/tensor_exchanges.h"

namespace lambcast::cuda {

TensorExchanges::TensorExchanges(const TensorLayout& tensors, int ranks, int rank,
                                 Padding padding) {
  for (std::size_t t = 0; t < tensors.tensors(); ++t) {
    if (tensors.size(t) == 0) continue;
    starts_.push_back(tensors.offsets[t]);
    exchanges_.emplace_back(tensors.size(t), ranks, rank, padding);
  }
  std::vector<PackedRun> runs;
  for (std::size_t i = 0; i < exchanges_.size(); ++i) {
    runs.push_back(exchanges_[i].average().all);
    runs.back().end = starts_[i] + exchanges_[i].layout().elements;
  }
  runs_ = DeviceBuffer<PackedRun>(std::span<const PackedRun>(runs));
}

cudaError_t TensorExchanges::compress(const WorkerPhase& input, cudaStream_t stream) {
  for (std::size_t i = 0; i < exchanges_.size(); ++i) {
    WorkerPhase own = input;
    if (own.x != nullptr) own.x += starts_[i];
    own.gradient = own.gradient.behind(starts_[i]);
    if (const auto e = exchanges_[i].compress(own, stream)) return e;
  }
  return cudaSuccess;
}

PackedAverage TensorExchanges::average(const float* mask) const {
  return {.runs = runs_.data(), .mask = mask};
}

cudaError_t TensorExchanges::forget_errors(cudaStream_t stream) {
  for (CompressedAllreduce& exchange : exchanges_) {
    if (const auto e = exchange.forget_errors(stream)) return e;
  }
  return cudaSuccess;
}

}  // namespace lambcast::cuda
