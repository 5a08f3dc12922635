#include <algorithm>
#include <cstdlib>

#include "kernels/cuda/device.cuh"

namespace lambcast::cuda {

cudaError_t grid_of(const void* kernel, std::size_t items, unsigned& blocks) {
  int device = 0, multiprocessors = 0, resident = 0;
  if (const auto e = cudaGetDevice(&device)) return e;
  if (const auto e =
          cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device)) {
    return e;
  }
  if (const auto e = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, threads, 0)) {
    return e;
  }
  const std::size_t full = static_cast<std::size_t>(multiprocessors) * resident;
  // At least one: a kernel that does not fit is refused by its launch.
  std::size_t most = std::clamp<std::size_t>(full, 1, reduction_slots);
  const char* const cap = std::getenv("LAMBCAST_MOST_BLOCKS");
  if (cap != nullptr) most = std::clamp<std::size_t>(std::strtoull(cap, nullptr, 10), 1, most);
  blocks = static_cast<unsigned>(std::clamp<std::size_t>(items, 1, most));
  return cudaSuccess;
}

}  // namespace lambcast::cuda
