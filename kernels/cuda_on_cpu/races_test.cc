// Kernels with a planted race, and their correct counterparts, in a build with the thread
// sanitizer: the emulated device reports the former and not the latter.
#include <atomic>
#include <catch2/catch.hpp>

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/device_buffer.h"

using namespace lambcast::cuda;

namespace {

std::atomic<int> reports = 0;

// Returns the races of one run of the kernel over zeroed ints.
template <typename Kernel>
int races(Kernel kernel, unsigned blocks, unsigned block_threads = 64) {
  const DeviceBuffer<int> memory(1024);
  const int before = reports;
  launch(kernel, blocks, block_threads, nullptr, memory.data());
  return reports - before;
}

template <bool barrier>
__global__ void neighbour_in_shared(int* sum) {
  __shared__ int values[64];
  values[threadIdx.x] = 1;
  if (barrier) __syncthreads();
  const int other = values[(threadIdx.x + 1) % 64];
  if (blockIdx.x == 0) sum[threadIdx.x] = other;
}

// The last thread to reach the first barrier continues first: it writes, and is at the second
// barrier before thread 0 has left the first.
template <bool barrier>
__global__ void overwritten_too_early(int* result) {
  __shared__ int value;
  if (threadIdx.x == 0) value = 1;
  __syncthreads();
  const int mine = value;
  if (barrier) __syncthreads();
  if (threadIdx.x == 63) value = 2;
  __syncthreads();
  if (blockIdx.x == 0) result[threadIdx.x] = mine + value;
}

template <bool own_byte>
__global__ void byte_per_block(int* memory) {
  if (threadIdx.x == 0) reinterpret_cast<char*>(memory)[own_byte ? blockIdx.x : 0] = 1;
}

// A shuffle moves its operand from lane to lane, but orders no memory.
template <bool through_memory>
__global__ void neighbour_by_shuffle(int* memory) {
  const int lane = static_cast<int>(threadIdx.x);
  memory[lane] = lane;
  const int other = __shfl_xor_sync(all_lanes, lane, 1);
  memory[64 + lane] = through_memory ? memory[lane ^ 1] : other;
}

__global__ void shared_sum(int* memory) {
  const double sum = block_sum(memory[threadIdx.x]), most = block_max(1.0f);
  if (threadIdx.x == 0) memory[64 + blockIdx.x] = static_cast<int>(sum + most);
}

__global__ void increment(int* memory) { ++memory[blockIdx.x * blockDim.x + threadIdx.x]; }

}  // namespace

extern "C" {
void __tsan_on_report(void*) { ++reports; }
// The reports are counted above.
const char* __tsan_default_options() { return "exitcode=0"; }
}

TEST_CASE("a missing barrier between writing and reading shared memory is a race") {
  CHECK(races(neighbour_in_shared<false>, 1) > 0);
  CHECK(races(neighbour_in_shared<true>, 1) == 0);
}

TEST_CASE("a missing barrier between reading and overwriting shared memory is a race") {
  CHECK(races(overwritten_too_early<false>, 1) > 0);
  CHECK(races(overwritten_too_early<true>, 1) == 0);
}

TEST_CASE("a byte of global memory that two blocks write is a race, neighbouring bytes are not") {
  CHECK(races(byte_per_block<false>, 2) > 0);
  CHECK(races(byte_per_block<true>, 4) == 0);
}

TEST_CASE("memory that another lane wrote before a shuffle is a race, the shuffled value is not") {
  CHECK(races(neighbour_by_shuffle<true>, 1) > 0);
  CHECK(races(neighbour_by_shuffle<false>, 1) == 0);
}

TEST_CASE("shared memory used by the blocks of one processor one after another is no race") {
  CHECK(races(neighbour_in_shared<true>, 12) == 0);
  CHECK(races(shared_sum, 12) == 0);
}

TEST_CASE("a launch precedes the next one and the copy to the host") {
  const int before = reports;
  const DeviceBuffer<int> memory(512);
  for (const unsigned block_threads : {64, 128, 32}) {
    launch(increment, 512 / block_threads, block_threads, nullptr, memory.data());
  }
  CHECK(memory.to_host() == std::vector<int>(512, 3));
  CHECK(reports == before);
}
