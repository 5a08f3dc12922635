#include "kernels/nccl/onebit_adam.h"

namespace lambcast::cuda {

namespace {

// Checks the arguments before anything is allocated.
const TensorLayout& checked(const TensorLayout& tensors, std::span<const float> initial,
                            const OnebitAdamOptions& options, const TensorTraits& traits) {
  check_freeze_step("freeze_step", options.freeze_step);
  check(tensors, initial, traits);
  check_tensors_aligned(tensors);
  return tensors;
}

// Returns the same tensors at the beginning of a buffer.
TensorLayout at_front(TensorLayout tensors) {
  const std::size_t first = tensors.offsets.front();
  for (std::size_t& offset : tensors.offsets) offset -= first;
  return tensors;
}

std::vector<GroupRun> runs_of(const TensorLayout& tensors, std::span<const ParameterGroup> groups) {
  return groups.empty() ? std::vector<GroupRun>() : group_runs(tensors, groups);
}

}  // namespace

OnebitAdam::OnebitAdam(const TensorLayout& tensors, std::span<const float> initial, int ranks,
                       int rank, const OnebitAdamOptions& options, const Quirks& quirks,
                       const TensorTraits& traits)
    : Replica(checked(tensors, initial, options, traits), initial, ranks, rank, quirks,
              options.adam.lr),
      compressing_(front(tensors, traits.never_freezing)),
      options_(options),
      exchanges_(compressing_, ranks, rank, quirks.padding),
      m_(tensors.elements()),
      v_(tensors.elements()),
      mask_(std::span<const float>(traits.mask)),
      runs_(std::span<const GroupRun>(runs_of(tensors, traits.group_of))),
      runs_behind_(std::span<const GroupRun>(
          runs_of(at_front(back(tensors, traits.never_freezing)),
                  part(traits.group_of, compressing_.tensors(), traits.never_freezing)))),
      per_tensor_(compressing_) {
  options_.adam.bias_correction = false;
}

AdamState OnebitAdam::state(std::size_t first, const DeviceBuffer<GroupRun>& runs,
                            std::size_t elements) const {
  return {.p = p_.data() + first,
          .m = m_.data() + first,
          .v = v_.data() + first,
          .half_p = copy_.behind(first),
          .elements = elements,
          .runs = runs.data(),
          .lr = lr_.device.data(),
          .unseen = quirks_.unseen};
}

StateLayout OnebitAdam::layout() const {
  StateLayout own = Replica::layout("1-bit Adam");
  own.never_freezing = tensors_.tensors() - compressing_.tensors();
  return own;
}

std::vector<std::byte> OnebitAdam::save() const { return saved(*this, layout()); }
void OnebitAdam::load(std::span<const std::byte> state) { restore(*this, layout(), state); }

cudaError_t OnebitAdam::variance_norms(double* norms, cudaStream_t stream) const {
  return cuda::variance_norms(per_tensor_.state(p_.data(), m_.data(), v_.data()), norms, stream);
}

cudaError_t OnebitAdam::begin_compression(cudaStream_t) {
  if (compresses()) return cudaSuccess;
  if (steps_ == 0) return cudaErrorInvalidValue;
  options_.freeze_step = steps_;
  return cudaSuccess;
}

cudaError_t OnebitAdam::count_replayed_step(cudaStream_t) {
  ++steps_;
  return cudaSuccess;
}

cudaError_t OnebitAdam::full_step(const Gradient& mean_gradient, cudaStream_t stream) {
  ++steps_;
  return adam_step(state(0, runs_, elements()), mean_gradient, options_.adam, steps_, stream);
}

cudaError_t OnebitAdam::compress(const Gradient& gradient, cudaStream_t stream) {
  WorkerPhase input;
  input.x = m_.data();
  input.gradient = gradient;
  input.beta1 = options_.adam.beta1;
  return exchanges_.compress(input, stream);
}

cudaError_t OnebitAdam::apply(const float* gradient, cudaStream_t stream) {
  ++steps_;
  const std::size_t first = compressing_.elements();
  if (const auto e = cuda::onebit_adam_step(
          state(0, runs_, first), exchanges_.average(mask_.data()), options_.adam, stream)) {
    return e;
  }
  if (first == elements()) return cudaSuccess;
  return adam_step(state(first, runs_behind_, elements() - first), gradient + first, options_.adam,
                   steps_, stream);
}

Step onebit_adam_step(const NcclApi& nccl, std::span<const OnebitAdamRank> ranks,
                      const GradientOptions& options) {
  return step_of(nccl, ranks, options);
}

}  // namespace lambcast::cuda
