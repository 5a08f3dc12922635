// The workspace of the two-stage reductions.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace lambcast::cuda {

// Doubles in the workspace of a kernel that reduces over its whole buffer: one slot per block.
constexpr std::size_t reduction_slots = 4096;

}  // namespace lambcast::cuda
