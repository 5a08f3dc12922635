#include "kernels/nccl/onebit_lamb.h"

#include <fmt/format.h>

#include <vector>

#include "kernels/nccl/group.h"

namespace lambcast::cuda {

OnebitLamb::OnebitLamb(const TensorLayout& tensors, std::span<const float> initial, int ranks,
                       int rank, const OnebitLambOptions& options, const Quirks& quirks)
    : tensors_(tensors),
      options_(options),
      quirks_(quirks),
      exchange_(tensors.elements(), ranks, rank, quirks.padding),
      p_(initial),
      m_(exchange_.layout().padded),
      v_(tensors.elements()),
      fresh_v_(tensors.elements()),
      scaling_(tensors.tensors()),
      last_factor_(std::span<const float>(std::vector<float>(tensors.tensors(), 1.0f))),
      offsets_(std::span<const std::size_t>(tensors.offsets)),
      per_tensor_(tensors) {
  if (options.freeze_step < 1) {
    throw Error(Exit::usage,
                fmt::format("freeze_step: {} (allowed: 1 and more)", options.freeze_step));
  }
  if (initial.size() != tensors.elements()) {
    throw Error(Exit::usage, fmt::format("{} weights for tensors of {} elements", initial.size(),
                                         tensors.elements()));
  }
}

cudaError_t OnebitLamb::warm_up(const float* mean_gradient, cudaStream_t stream) {
  const RunningAverage average{options_.coeff_beta, quirks_.coefficient_average};
  if (const auto e = lamb_step(state(), mean_gradient, options_.lamb, average, stream)) return e;
  ++steps_;
  return compresses() ? freeze(stream) : cudaSuccess;
}

cudaError_t OnebitLamb::freeze(cudaStream_t stream) {
  const std::size_t bytes = v_.size() * sizeof(float);
  if (const auto e =
          cudaMemcpyAsync(fresh_v_.data(), v_.data(), bytes, cudaMemcpyDeviceToDevice, stream)) {
    return e;
  }
  return scaling_coefficients(state(), scaling_.data(), stream);
}

cudaError_t OnebitLamb::compress(const float* gradient, cudaStream_t stream) {
  WorkerPhase input;
  input.x = m_.data();
  input.gradient = gradient;
  input.beta1 = options_.lamb.beta1;
  input.scaling = scaling_.data();
  input.tensor_offsets = offsets_.data();
  input.tensors = static_cast<int>(tensors_.tensors());
  input.x_elements = quirks_.persistent_tail ? m_.size() : tensors_.elements();
  return exchange_.compress(input, stream);
}

cudaError_t OnebitLamb::apply(cudaStream_t stream) {
  const Decode average = exchange_.decoding(nullptr);
  CompressedLambState x;
  x.fresh_v = fresh_v_.data();
  x.scaling = scaling_.data();
  x.last_factor = last_factor_.data();
  x.signs = average.signs;
  x.scales = average.scales;
  x.chunk = average.chunk;
  x.elements = tensors_.elements();
  x.tail_end = quirks_.persistent_tail ? m_.size() : 0;
  ++steps_;
  return cuda::onebit_lamb_step(state(), x, options_, quirks_.coefficient_average, stream);
}

namespace {

void warm_up(const NcclApi& nccl, std::span<const OnebitLambRank> ranks) {
  in_group(nccl, ranks, [&](const OnebitLambRank& rank) {
    require(nccl,
            nccl.ncclAllReduce(rank.gradient, rank.gradient, rank.optimizer->elements(),
                               ncclFloat32, ncclAvg, rank.comm, rank.stream),
            "mean of the gradients");
  });
  on_each(ranks, [](const OnebitLambRank& rank) {
    require(rank.optimizer->warm_up(rank.gradient, rank.stream), "LAMB step");
  });
}

void compressed(const NcclApi& nccl, std::span<const OnebitLambRank> ranks) {
  std::vector<LocalRank> exchange;
  on_each(ranks, [&](const OnebitLambRank& rank) {
    require(rank.optimizer->compress(rank.gradient, rank.stream), "worker phase");
    exchange.push_back({.device = rank.device,
                        .state = rank.optimizer->exchange(),
                        .comm = rank.comm,
                        .stream = rank.stream});
  });
  exchange_compressed(nccl, exchange);
  on_each(ranks, [](const OnebitLambRank& rank) {
    require(rank.optimizer->apply(rank.stream), "1-bit LAMB step");
  });
}

}  // namespace

void onebit_lamb_step(const NcclApi& nccl, std::span<const OnebitLambRank> ranks) {
  if (ranks.empty()) return;
  ranks.front().optimizer->compresses() ? compressed(nccl, ranks) : warm_up(nccl, ranks);
}

}  // namespace lambcast::cuda
