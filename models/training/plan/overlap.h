// Overlap of gradient communication with computation in steps without compression;
// gradient_reduction.h describes each kind.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lambcast {

enum class Overlap {
  none,  // after the backward pass
  ddp,   // in buckets of 25 MB during the last backward pass, as PyTorch DDP does
  zero,  // as ZeRO's overlap_comm, which is set in the recipe (Zero::overlap)
};
const std::vector<std::string>& overlap_names();
std::string_view name_of(Overlap overlap);

}  // namespace lambcast
