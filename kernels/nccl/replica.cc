#include "kernels/nccl/replica.h"

namespace lambcast::cuda {

Replica::Replica(const TensorLayout& tensors, std::span<const float> initial, int ranks, int rank,
                 const Quirks& quirks, double lr)
    : tensors_(tensors), ranks_(ranks), rank_(rank), quirks_(quirks), lr_(lr), p_(initial) {}

cudaError_t Replica::keep_copy(HalfPointer copy, cudaStream_t stream) {
  if (copy) {
    if (const auto e = round_to(copy, p_.data(), p_.size(), stream)) return e;
  }
  copy_ = copy;
  return cudaSuccess;
}

StateLayout Replica::layout(std::string_view optimizer) const {
  return {.optimizer = optimizer,
          .ranks = ranks_,
          .rank = rank_,
          .padding = quirks_.padding,
          .tensors = &tensors_};
}

}  // namespace lambcast::cuda
