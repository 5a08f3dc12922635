#include "kernels/nccl/onebit_lamb.h"

#include <algorithm>

namespace lambcast::cuda {

namespace {

// Checks the arguments before anything is allocated.
const TensorLayout& checked(const TensorLayout& tensors, std::span<const float> initial,
                            const OnebitLambOptions& options, const Quirks& quirks,
                            const TensorTraits& traits) {
  check_freeze_step("freeze_step", options.freeze_step);
  check(tensors, initial, traits);
  if (traits.never_freezing > 0 && quirks.persistent_tail) {
    throw Error(Exit::usage, "padding that persists does not go with tensors that never freeze");
  }
  return tensors;
}

}  // namespace

OnebitLamb::OnebitLamb(const TensorLayout& tensors, std::span<const float> initial, int ranks,
                       int rank, const OnebitLambOptions& options, const Quirks& quirks,
                       const TensorTraits& traits)
    : Replica(checked(tensors, initial, options, quirks, traits), initial, ranks, rank, quirks,
              options.lamb.lr),
      compressing_(front(tensors, traits.never_freezing)),
      options_(options),
      exchange_(compressing_.elements(), ranks, rank, quirks.padding),
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

StateLayout OnebitLamb::layout() const {
  StateLayout own = Replica::layout("1-bit LAMB");
  own.persistent_tail = quirks_.persistent_tail;
  own.never_freezing = tensors_.tensors() - compressing_.tensors();
  return own;
}

std::vector<std::byte> OnebitLamb::save() const { return saved(*this, layout()); }
void OnebitLamb::load(std::span<const std::byte> state) { restore(*this, layout(), state); }

cudaError_t OnebitLamb::full_step(const Gradient& mean_gradient, cudaStream_t stream) {
  const RunningAverage average{options_.coeff_beta, quirks_.coefficient_average};
  for (const LambTensors* tensors : {&per_tensor_, &never_freezing_}) {
    if (const auto e = lamb_step(state(*tensors), mean_gradient, options_.lamb, average, stream)) {
      return e;
    }
  }
  return finish(stream);
}

cudaError_t OnebitLamb::finish(cudaStream_t stream) {
  const bool compressed = compresses();
  ++steps_;
  return compresses() && !compressed ? freeze(stream) : cudaSuccess;
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

cudaError_t OnebitLamb::compress(const Gradient& gradient, cudaStream_t stream) {
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
  const PackedRun average = exchange_.average().all;
  CompressedLambState x;
  x.fresh_v = fresh_v_.data();
  x.scaling = scaling_.data();
  x.last_factor = last_factor_.data();
  x.mask = mask_.data();
  x.unseen = quirks_.unseen;
  x.signs = average.signs;
  x.scales = average.scales;
  x.chunk = average.chunk;
  x.elements = compressing_.elements();
  x.tail_end = quirks_.persistent_tail ? m_.size() : 0;
  if (const auto e = cuda::onebit_lamb_step(state(per_tensor_), x, options_,
                                            quirks_.coefficient_average, stream)) {
    return e;
  }
  if (const auto e = lamb_step(state(never_freezing_), gradient, options_.lamb, {}, stream)) {
    return e;
  }
  return finish(stream);
}

Step onebit_lamb_step(const NcclApi& nccl, std::span<const OnebitLambRank> ranks,
                      const GradientOptions& options) {
  return step_of(nccl, ranks, options);
}

}  // namespace lambcast::cuda
