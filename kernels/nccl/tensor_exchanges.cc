#include "kernels/nccl/tensor_exchanges.h"

namespace lambcast::cuda {

TensorExchanges::TensorExchanges(const TensorLayout& tensors, int ranks, int rank,
                                 Padding padding) {
  for (std::size_t t = 0; t < tensors.tensors(); ++t) {
    if (tensors.size(t) == 0) continue;
    starts_.push_back(tensors.offsets[t]);
    exchanges_.emplace_back(tensors.size(t), ranks, rank, padding);
  }
}

cudaError_t TensorExchanges::compress(const WorkerPhase& input, cudaStream_t stream) {
  for (std::size_t i = 0; i < exchanges_.size(); ++i) {
    WorkerPhase own = input;
    own.x += starts_[i];
    if (own.gradient != nullptr) own.gradient += starts_[i];
    if (const auto e = exchanges_[i].compress(own, stream)) return e;
  }
  return cudaSuccess;
}

cudaError_t TensorExchanges::decode_into(float* x, const float* mask, cudaStream_t stream) const {
  for (std::size_t i = 0; i < exchanges_.size(); ++i) {
    Decode average = exchanges_[i].decoding(x + starts_[i]);
    if (mask != nullptr) average.mask = mask + starts_[i];
    if (const auto e = decode(average, stream)) return e;
  }
  return cudaSuccess;
}

cudaError_t TensorExchanges::forget_errors(cudaStream_t stream) {
  for (CompressedAllreduce& exchange : exchanges_) {
    if (const auto e = exchange.forget_errors(stream)) return e;
  }
  return cudaSuccess;
}

}  // namespace lambcast::cuda
