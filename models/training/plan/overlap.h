// Overlap of gradients and network in steps that do not compress; gradient_reduction.h describes
// each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lambcast {

enum class Overlap {
  none,  // after the backward pass
  ddp,   // in buckets of 25 MB during the last backward pass, as PyTorch DDP does
  zero,  // as ZeRO's overlap_comm does it, which is the recipe's (Zero::overlap)
};
const std::vector<std::string>& overlap_names();
std::string_view name_of(Overlap overlap);

}  // namespace lambcast
