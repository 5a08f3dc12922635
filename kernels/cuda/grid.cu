#include <algorithm>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>

#include "kernels/cuda/device.cuh"

namespace lambcast::cuda {
namespace {

// Computes the number of blocks of a kernel that a device holds at once. The driver's query takes
// microseconds, as long as a small kernel, so its result is cached.
cudaError_t full_grid(const void* kernel, std::size_t& full) {
  static std::mutex guard;
  static std::map<std::pair<int, const void*>, std::size_t> known;
  int device = 0;
  if (const auto e = cudaGetDevice(&device)) return e;
  const std::lock_guard lock(guard);
  const auto found = known.find({device, kernel});
  if (found != known.end()) {
    full = found->second;
    return cudaSuccess;
  }
  int multiprocessors = 0, resident = 0;
  if (const auto e =
          cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device)) {
    return e;
  }
  if (const auto e = cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, threads, 0)) {
    return e;
  }
  full = static_cast<std::size_t>(multiprocessors) * resident;
  known[{device, kernel}] = full;
  return cudaSuccess;
}

}  // namespace

cudaError_t grid_of(const void* kernel, std::size_t items, unsigned& blocks) {
  std::size_t full = 0;
  if (const auto e = full_grid(kernel, full)) return e;
  // At least one block: a kernel that does not fit is rejected by its launch.
  std::size_t most = std::clamp<std::size_t>(full, 1, reduction_slots);
  const char* const cap = std::getenv("LAMBCAST_MOST_BLOCKS");
  if (cap != nullptr) most = std::clamp<std::size_t>(std::strtoull(cap, nullptr, 10), 1, most);
  blocks = static_cast<unsigned>(std::clamp<std::size_t>(items, 1, most));
  return cudaSuccess;
}

}  // namespace lambcast::cuda
