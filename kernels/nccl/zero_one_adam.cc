#include "kernels/nccl/zero_one_adam.h"

namespace lambcast::cuda {

namespace {

// Checks the arguments before anything is allocated.
const TensorLayout& checked(const TensorLayout& tensors, std::span<const float> initial,
                            const ZeroOneAdamOptions& options, const TensorTraits& traits) {
  check_freeze_step("var_freeze_step", options.var_freeze_step);
  check_freeze_step("local_step_clipper", options.local_step_clipper);
  check(tensors, initial, traits);
  check_tensors_aligned(tensors);
  if (traits.never_freezing > 0) {
    throw Error(Exit::usage, "0/1 Adam has no tensors that never freeze");
  }
  return tensors;
}

}  // namespace

ZeroOneAdam::ZeroOneAdam(const TensorLayout& tensors, std::span<const float> initial, int ranks,
                         int rank, const ZeroOneAdamOptions& options, const Quirks& quirks,
                         const TensorTraits& traits)
    : Replica(checked(tensors, initial, options, traits), initial, ranks, rank, quirks,
              options.adam.lr),
      options_(options),
      exchanges_(tensors, ranks, rank, quirks.padding),
      m_(tensors.elements()),
      v_(tensors.elements()),
      u_(tensors.elements()),
      mask_(std::span<const float>(traits.mask)),
      runs_(std::span<const GroupRun>(traits.group_of.empty()
                                          ? std::vector<GroupRun>()
                                          : group_runs(tensors, traits.group_of))) {
  options_.adam.bias_correction = false;
}

AdamState ZeroOneAdam::state(HalfPointer copy) const {
  return {.p = p_.data(),
          .m = m_.data(),
          .v = v_.data(),
          .u = u_.data(),
          .half_p = copy,
          .elements = elements(),
          .runs = runs_.data(),
          .lr = lr_.device.data(),
          .lrs = lrs_on_device_.data(),
          .unseen = quirks_.unseen};
}

std::vector<std::byte> ZeroOneAdam::save() const { return saved(*this, layout("0/1 Adam")); }
void ZeroOneAdam::load(std::span<const std::byte> state) {
  restore(*this, layout("0/1 Adam"), state);
}

Step ZeroOneAdam::next() const {
  const Step kind = kind_of(policy_, steps_ + 1);
  // If no weight has moved, there is nothing to synchronise.
  return policy_.frozen && lrs_ + lr_.host == 0 ? Step::silent : kind;
}

cudaError_t ZeroOneAdam::finish(Step kind, cudaStream_t stream) {
  const bool was_frozen = policy_.frozen;
  if (was_frozen) lrs_ = kind == Step::onebit ? 0 : lrs_ + lr_.host;
  ++steps_;
  advance(policy_, steps_, steps_, options_);
  if (was_frozen || !policy_.frozen) return cudaSuccess;
  // The error feedback of gradients does not apply to u.
  return exchanges_.forget_errors(stream);
}

cudaError_t ZeroOneAdam::full_step(const Gradient& mean_gradient, cudaStream_t stream) {
  if (const auto e = adam_step(state(copy_), mean_gradient, options_.adam, steps_ + 1, stream))
    return e;
  return finish(Step::full, stream);
}

cudaError_t ZeroOneAdam::compress(const Gradient& gradient, cudaStream_t stream) {
  if (policy_.frozen) {
    if (const auto e = zero_one_sync_begin(state({}), gradient, options_.adam, stream)) return e;
  }
  WorkerPhase input;
  if (policy_.frozen)
    input.x = u_.data();
  else
    input.gradient = gradient;
  return exchanges_.compress(input, stream);
}

cudaError_t ZeroOneAdam::apply(const float*, cudaStream_t stream) {
  const PackedAverage average = exchanges_.average(mask_.data());
  const AdamState own = state(copy_);
  if (const auto e = policy_.frozen
                         ? zero_one_sync_end(own, average, lrs_ + lr_.host, options_.adam, stream)
                         : zero_one_onebit_step(own, average, options_.adam, stream)) {
    return e;
  }
  return finish(Step::onebit, stream);
}

cudaError_t ZeroOneAdam::local_step(const Gradient& gradient, cudaStream_t stream) {
  if (const auto e = zero_one_local_step(state(copy_), gradient, options_.adam, stream)) return e;
  return finish(Step::silent, stream);
}

Step zero_one_adam_step(const NcclApi& nccl, std::span<const ZeroOneAdamRank> ranks,
                        const GradientOptions& options) {
  return step_of(nccl, ranks, options);
}

}  // namespace lambcast::cuda
