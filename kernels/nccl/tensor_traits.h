// How the tensors of a model differ from each other, for the optimizers of this folder.
#pragma once

#include <span>
#include <vector>

#include "kernels/options.h"

namespace lambcast::cuda {

struct TensorTraits {
  std::vector<ParameterGroup> group_of;  // of every tensor; empty: the options hold for all
  std::vector<float> mask;               // of the momenta that are compressed; empty: all ones
  std::size_t never_freezing = 0;        // so many tensors at the end
};

// Throws Error for weights or traits that do not fit the tensors.
void check(const TensorLayout& tensors, std::span<const float> initial, const TensorTraits& traits);
// Throws Error for a stage of no steps.
void check_freeze_step(const char* key, int value);
// Throws Error where a tensor does not begin at a multiple of four elements, which kernels over
// single tensors of a flat buffer need.
void check_tensors_aligned(const TensorLayout& tensors);

// The first of `tensors`, or the others, when `behind` of them stand behind the rest.
TensorLayout front(const TensorLayout& tensors, std::size_t behind);
TensorLayout back(const TensorLayout& tensors, std::size_t behind);
// Their groups; empty when `groups` is.
std::span<const ParameterGroup> part(std::span<const ParameterGroup> groups, std::size_t first,
                                     std::size_t count);

}  // namespace lambcast::cuda
