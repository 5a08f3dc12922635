#include "kernels/nccl/onebit_lamb.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/nccl/group.h"

namespace lambcast::cuda {

namespace {

// The first, or the other, of `tensors` when `behind` of them stand behind the rest.
TensorLayout front(const TensorLayout& tensors, std::size_t behind) {
  return {{tensors.offsets.begin(), tensors.offsets.end() - static_cast<std::ptrdiff_t>(behind)}};
}
TensorLayout back(const TensorLayout& tensors, std::size_t behind) {
  return {{tensors.offsets.end() - 1 - static_cast<std::ptrdiff_t>(behind), tensors.offsets.end()}};
}
std::span<const ParameterGroup> part(std::span<const ParameterGroup> groups, std::size_t first,
                                     std::size_t count) {
  return groups.empty() ? groups : groups.subspan(first, count);
}

void refuse(const std::string& why) { throw Error(Exit::usage, why); }

void check(const TensorLayout& tensors, std::span<const float> initial,
           const OnebitLambOptions& options, const Quirks& quirks, const TensorTraits& traits) {
  if (options.freeze_step < 1) {
    refuse(fmt::format("freeze_step: {} (allowed: 1 and more)", options.freeze_step));
  }
  if (initial.size() != tensors.elements()) {
    refuse(
        fmt::format("{} weights for tensors of {} elements", initial.size(), tensors.elements()));
  }
  if (!traits.group_of.empty() && traits.group_of.size() != tensors.tensors()) {
    refuse(fmt::format("{} groups for {} tensors", traits.group_of.size(), tensors.tensors()));
  }
  if (!traits.mask.empty() && traits.mask.size() != tensors.elements()) {
    refuse(fmt::format("a mask of {} elements for tensors of {}", traits.mask.size(),
                       tensors.elements()));
  }
  if (traits.never_freezing > 0 && traits.never_freezing >= tensors.tensors()) {
    refuse(fmt::format("{} of {} tensors never freeze", traits.never_freezing, tensors.tensors()));
  }
  if (traits.never_freezing > 0 && quirks.persistent_tail) {
    refuse("padding that persists does not go with tensors that never freeze");
  }
}

// Before anything is allocated.
const TensorLayout& checked(const TensorLayout& tensors, std::span<const float> initial,
                            const OnebitLambOptions& options, const Quirks& quirks,
                            const TensorTraits& traits) {
  check(tensors, initial, options, quirks, traits);
  return tensors;
}

}  // namespace

OnebitLamb::OnebitLamb(const TensorLayout& tensors, std::span<const float> initial, int ranks,
                       int rank, const OnebitLambOptions& options, const Quirks& quirks,
                       const TensorTraits& traits)
    : compressing_(
          front(checked(tensors, initial, options, quirks, traits), traits.never_freezing)),
      options_(options),
      quirks_(quirks),
      exchange_(compressing_.elements(), ranks, rank, quirks.padding),
      p_(initial),
      m_(std::max(exchange_.layout().padded, tensors.elements())),
      v_(tensors.elements()),
      fresh_v_(compressing_.elements()),
      mask_(std::span<const float>(traits.mask)),
      scaling_(compressing_.tensors()),
      last_factor_(std::span<const float>(std::vector<float>(compressing_.tensors(), 1.0f))),
      offsets_(std::span<const std::size_t>(compressing_.offsets)),
      per_tensor_(compressing_, part(traits.group_of, 0, compressing_.tensors())),
      never_freezing_(back(tensors, traits.never_freezing),
                      part(traits.group_of, compressing_.tensors(), traits.never_freezing)) {
  options_.lamb.bias_correction = BiasCorrection::none;
}

cudaError_t OnebitLamb::warm_up(const float* mean_gradient, cudaStream_t stream) {
  const RunningAverage average{options_.coeff_beta, quirks_.coefficient_average};
  for (const LambTensors* tensors : {&per_tensor_, &never_freezing_}) {
    if (const auto e = lamb_step(state(*tensors), mean_gradient, options_.lamb, average, stream)) {
      return e;
    }
  }
  ++steps_;
  return compresses() ? freeze(stream) : cudaSuccess;
}

cudaError_t OnebitLamb::begin_compression(cudaStream_t stream) {
  if (compresses()) return cudaSuccess;
  if (steps_ == 0) return cudaErrorInvalidValue;
  options_.freeze_step = steps_;
  return freeze(stream);
}

cudaError_t OnebitLamb::freeze(cudaStream_t stream) {
  const std::size_t bytes = fresh_v_.size() * sizeof(float);
  if (const auto e =
          cudaMemcpyAsync(fresh_v_.data(), v_.data(), bytes, cudaMemcpyDeviceToDevice, stream)) {
    return e;
  }
  return scaling_coefficients(state(per_tensor_), scaling_.data(), stream);
}

cudaError_t OnebitLamb::compress(const float* gradient, cudaStream_t stream) {
  WorkerPhase input;
  input.x = m_.data();
  input.gradient = gradient;
  input.beta1 = options_.lamb.beta1;
  input.scaling = scaling_.data();
  input.tensor_offsets = offsets_.data();
  input.tensors = static_cast<int>(compressing_.tensors());
  input.x_elements = quirks_.persistent_tail ? m_.size() : compressing_.elements();
  return exchange_.compress(input, stream);
}

cudaError_t OnebitLamb::apply(const float* gradient, cudaStream_t stream) {
  const Decode average = exchange_.decoding(nullptr);
  CompressedLambState x;
  x.fresh_v = fresh_v_.data();
  x.scaling = scaling_.data();
  x.last_factor = last_factor_.data();
  x.mask = mask_.data();
  x.signs = average.signs;
  x.scales = average.scales;
  x.chunk = average.chunk;
  x.elements = compressing_.elements();
  x.tail_end = quirks_.persistent_tail ? m_.size() : 0;
  ++steps_;
  if (const auto e = cuda::onebit_lamb_step(state(per_tensor_), x, options_,
                                            quirks_.coefficient_average, stream)) {
    return e;
  }
  return lamb_step(state(never_freezing_), gradient, options_.lamb, {}, stream);
}

namespace {

// The mean over the ranks of the gradient's elements from `first` on.
void average(const NcclApi& nccl, std::span<const OnebitLambRank> ranks, std::size_t first) {
  const std::size_t count = ranks.front().optimizer->elements() - first;
  if (count == 0) return;
  in_group(nccl, ranks, [&](const OnebitLambRank& rank) {
    float* gradient = rank.gradient + first;
    require(
        nccl,
        nccl.ncclAllReduce(gradient, gradient, count, ncclFloat32, ncclAvg, rank.comm, rank.stream),
        "mean of the gradients");
  });
}

void warm_up(const NcclApi& nccl, std::span<const OnebitLambRank> ranks) {
  average(nccl, ranks, 0);
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
  average(nccl, ranks, ranks.front().optimizer->compressed_elements());
  on_each(ranks, [](const OnebitLambRank& rank) {
    require(rank.optimizer->apply(rank.gradient, rank.stream), "1-bit LAMB step");
  });
}

}  // namespace

void onebit_lamb_step(const NcclApi& nccl, std::span<const OnebitLambRank> ranks) {
  if (ranks.empty()) return;
  ranks.front().optimizer->compresses() ? compressed(nccl, ranks) : warm_up(nccl, ranks);
}

}  // namespace lambcast::cuda
