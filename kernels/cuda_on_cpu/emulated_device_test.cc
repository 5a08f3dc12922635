#include <catch2/catch.hpp>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/device_buffer.h"
#include "sim/base/check.h"

using namespace lambcast;
using namespace lambcast::cuda;

namespace {

template <bool shuffle>
__global__ void half_of_them_wait(int* memory) {
  if (threadIdx.x % 2 == 0) return;
  if (shuffle)
    memory[0] = __shfl_xor_sync(all_lanes, 1, 1);
  else
    __syncthreads();
}

__global__ void write_own(int* memory) { memory[blockIdx.x * blockDim.x + threadIdx.x] = 1; }

}  // namespace

TEST_CASE("a barrier or shuffle that not all threads reach is an error instead of a hang") {
  const DeviceBuffer<int> memory(6 * 64);
  CHECK_THROWS_AS(launch(half_of_them_wait<true>, 6, 64, nullptr, memory.data()), InternalError);
  CHECK_THROWS_AS(launch(half_of_them_wait<false>, 6, 64, nullptr, memory.data()), InternalError);
  launch(write_own, 6, 64, nullptr, memory.data());
  CHECK(memory.to_host() == std::vector<int>(6 * 64, 1));
}

#ifdef __SANITIZE_ADDRESS__
TEST_CASE("the byte after device memory, which is aligned to 256, is outside it") {
  for (const std::size_t bytes : {1, 16, 255, 256, 1001}) {
    const DeviceBuffer<char> memory(bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(memory.data()) % 256 == 0);
    CHECK_FALSE(__asan_address_is_poisoned(memory.data() + bytes - 1));
    CHECK(__asan_address_is_poisoned(memory.data() + bytes));
  }
}
#endif
