// Differences between the tensors of a model, for the optimizers of this folder.
#pragma once

#include <span>
#include <vector>

#include "kernels/options.h"

namespace lambcast::cuda {

struct TensorTraits {
  std::vector<ParameterGroup> group_of;  // one for each tensor; empty: the options apply to all
  std::vector<float> mask;               // mask of the compressed momenta; empty: all ones
  std::size_t never_freezing = 0;        // number of last tensors that never freeze
};

// Throws Error for weights or traits that do not fit the tensors.
void check(const TensorLayout& tensors, std::span<const float> initial, const TensorTraits& traits);
// Throws Error for a stage without steps.
void check_freeze_step(const char* key, int value);
// Throws Error unless all tensors begin at multiples of four elements, which kernels over single
// tensors of a flat buffer need.
void check_tensors_aligned(const TensorLayout& tensors);

// Return the first tensors without the last `behind` ones, or only the last `behind` ones.
TensorLayout front(const TensorLayout& tensors, std::size_t behind);
TensorLayout back(const TensorLayout& tensors, std::size_t behind);
// Returns the groups of these tensors; empty if `groups` is empty.
std::span<const ParameterGroup> part(std::span<const ParameterGroup> groups, std::size_t first,
                                     std::size_t count);

}  // namespace lambcast::cuda
