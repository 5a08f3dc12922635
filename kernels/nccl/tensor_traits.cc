#include "kernels/nccl/tensor_traits.h"

#include <fmt/format.h>

#include <string>

#include "sim/base/error.h"

namespace lambcast::cuda {

namespace {

[[noreturn]] void refuse(const std::string& why) { throw Error(Exit::usage, why); }

}  // namespace

void check(const TensorLayout& tensors, std::span<const float> initial,
           const TensorTraits& traits) {
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
}

void check_freeze_step(const char* key, int value) {
  if (value < 1) refuse(fmt::format("{}: {} (allowed: 1 and more)", key, value));
}

void check_tensors_aligned(const TensorLayout& tensors) {
  for (std::size_t t = 0; t < tensors.tensors(); ++t) {
    if (tensors.offsets[t] % 4 == 0) continue;
    refuse(fmt::format("tensor {} begins at element {} (allowed: multiples of 4)", t,
                       tensors.offsets[t]));
  }
}

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

}  // namespace lambcast::cuda
