// The part of CUDA that this library's kernels need, on a CPU, so that their logic is tested
// without a GPU: the same .cu files, compiled by the host compiler with this folder first in the
// include path.
//
// Each thread of a block is a fiber. At a barrier or shuffle, the other fibers run until all have
// arrived; if not all can reach it, that is an error. The device has two multiprocessors with two
// blocks each: four OS threads, and thread w runs the blocks w, w + 4, w + 8, ... in turn. So
// indexing, tails, packing, reductions and the order of launches are really tested. "Device" memory
// is host memory, a stream does nothing, and a launch returns when the kernel has ended. The
// runtime reports two GPUs, which are the same one.
//
// The sanitizers of the host compiler find
// - address: accesses to global memory outside an allocation, to the byte, or after it was freed;
// - undefined: accesses outside a shared array, misaligned ones, and other undefined C++;
// - thread: two threads that access the same byte of shared or global memory, one of them writing,
//   without a __syncthreads() of their block or the end of a kernel in between. A shuffle orders no
//   memory. The order matters, not the time of each access.
// They do not find: races of blocks that one OS thread runs in turn; races with an access that four
// later ones to the same eight bytes have displaced; memory order beyond barriers (atomics order
// nothing else, and there are no fences); diverging lanes of a warp; missing waits between streams;
// memory that was never written; real scheduling, speed.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>

#define __global__
#define __device__
#define __host__
#define __shared__ static thread_local  // an OS thread runs one block at a time
#define __launch_bounds__(...)

namespace lambcast::cuda_on_cpu {
constexpr int multiprocessors = 2, blocks_of_multiprocessor = 2;
// Set by a fake library to simulate work that never ends (fake_nccl.h). Streams are then never
// ready.
inline std::atomic<bool> streams_stall = false;
inline thread_local int current_device = 0;
// Callbacks that count accesses (traffic.h): when memory is allocated and freed, and when a kernel
// ends.
inline void (*on_allocation)(void* data, std::size_t bytes) = nullptr;
inline void (*on_free)(void* data) = nullptr;
inline void (*on_kernel_end)() = nullptr;
// Number of occupancy queries.
inline std::atomic<int> occupancy_questions = 0;
}  // namespace lambcast::cuda_on_cpu

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorNotReady = 600,
  cudaErrorMisalignedAddress = 716
};
enum cudaMemcpyKind {
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4
};
enum cudaDeviceAttr {
  cudaDevAttrClockRate = 13,
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrMemoryClockRate = 36
};
using cudaStream_t = void*;
constexpr unsigned cudaStreamNonBlocking = 1;
using cudaEvent_t = std::chrono::steady_clock::time_point*;
struct cudaDeviceProp {
  char name[32] = "emulated device";
  std::size_t totalGlobalMem = std::size_t{1} << 30;
  int l2CacheSize = 1 << 16, memoryBusWidth = 64, major = 9, minor = 0;
  int multiProcessorCount = lambcast::cuda_on_cpu::multiprocessors;
};

inline const char* cudaGetErrorString(cudaError_t) { return "error on the emulated device"; }
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline cudaError_t cudaGetDeviceCount(int* count) { return *count = 2, cudaSuccess; }
inline cudaError_t cudaGetDevice(int* device) {
  return *device = lambcast::cuda_on_cpu::current_device, cudaSuccess;
}
inline cudaError_t cudaSetDevice(int device) {
  return lambcast::cuda_on_cpu::current_device = device, cudaSuccess;
}
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  return *properties = {}, cudaSuccess;
}
inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return *stream = nullptr, cudaSuccess;
}
inline cudaError_t cudaStreamCreate(cudaStream_t* stream) { return *stream = nullptr, cudaSuccess; }
inline cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamQuery(cudaStream_t) {
  return lambcast::cuda_on_cpu::streams_stall ? cudaErrorNotReady : cudaSuccess;
}
inline cudaError_t cudaDeviceGetPCIBusId(char* address, int length, int) {
  return std::strncpy(address, "0000:00:00.0", static_cast<std::size_t>(length)), cudaSuccess;
}
inline cudaError_t cudaDriverGetVersion(int* version) { return *version = 0, cudaSuccess; }
inline cudaError_t cudaRuntimeGetVersion(int* version) { return *version = 0, cudaSuccess; }
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int) {
  *value = which == cudaDevAttrMultiProcessorCount ? lambcast::cuda_on_cpu::multiprocessors : 0;
  return cudaSuccess;
}
inline cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return *event = new std::chrono::steady_clock::time_point, cudaSuccess;
}
inline cudaError_t cudaEventDestroy(cudaEvent_t event) { return delete event, cudaSuccess; }
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  return *event = std::chrono::steady_clock::now(), cudaSuccess;
}
inline cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t stop) {
  return *ms = std::chrono::duration<float, std::milli>(*stop - *start).count(), cudaSuccess;
}
inline cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return *free = *total = cudaDeviceProp().totalGlobalMem, cudaSuccess;
}
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int,
                                                                 std::size_t) {
  ++lambcast::cuda_on_cpu::occupancy_questions;
  return *blocks = lambcast::cuda_on_cpu::blocks_of_multiprocessor, cudaSuccess;
}
// Allocates the exact size, so that the address sanitizer checks the next byte.
inline cudaError_t cudaMalloc(void** data, std::size_t bytes) {
  if (posix_memalign(data, 256, bytes) != 0) return cudaErrorMemoryAllocation;
  if (lambcast::cuda_on_cpu::on_allocation) lambcast::cuda_on_cpu::on_allocation(*data, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaFree(void* data) {
  if (lambcast::cuda_on_cpu::on_free) lambcast::cuda_on_cpu::on_free(data);
  return std::free(data), cudaSuccess;
}
inline cudaError_t cudaMallocHost(void** data, std::size_t bytes) {
  return *data = std::malloc(bytes), cudaSuccess;
}
inline cudaError_t cudaFreeHost(void* data) { return std::free(data), cudaSuccess; }
inline cudaError_t cudaMemset(void* data, int value, std::size_t bytes) {
  return std::memset(data, value, bytes), cudaSuccess;
}
inline cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind) {
  if (bytes > 0) std::memcpy(to, from, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* data, int value, std::size_t bytes, cudaStream_t) {
  return cudaMemset(data, value, bytes);
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes,
                                   cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpy(to, from, bytes, kind);
}

struct Dim {
  unsigned x = 0;
};
inline constinit thread_local Dim threadIdx, blockIdx, blockDim, gridDim;

struct alignas(16) float4 {
  float x, y, z, w;
};
struct float2 {
  float x, y;
};
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
struct alignas(8) uint2 {
  unsigned x, y;
};
template <typename T>
T __ldcs(const T* x) {
  return *x;
}
template <typename T>
T __ldg(const T* x) {
  return *x;
}
template <typename T>
void __stcs(T* x, T value) {
  *x = value;
}

// Atomic over all threads, but relaxed: it does not order other accesses.
inline unsigned atomicAdd(unsigned* x, unsigned more) {
  return std::atomic_ref(*x).fetch_add(more, std::memory_order_relaxed);
}

using std::isfinite;
using std::max;
using std::min;
using std::signbit;

void __syncthreads();

namespace lambcast::cuda_on_cpu {

// Runs `thread` once for every thread of every block. Launches from several host threads take
// turns.
void run(unsigned blocks, unsigned block_threads, const std::function<void()>& thread);
// Returns the 8 bytes that thread `lane` of this warp offers in the same call.
std::uint64_t exchange(std::uint64_t offered, unsigned lane);

template <typename T>
T shuffle(T value, unsigned lane) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = exchange(bits, lane);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace lambcast::cuda_on_cpu

template <typename T>
T __shfl_xor_sync(unsigned, T value, unsigned mask) {
  return lambcast::cuda_on_cpu::shuffle(value, (threadIdx.x % 32) ^ mask);
}
template <typename T>
T __shfl_down_sync(unsigned, T value, unsigned offset) {
  const unsigned lane = threadIdx.x % 32;
  return lambcast::cuda_on_cpu::shuffle(value, lane + offset < 32 ? lane + offset : lane);
}
template <typename T>
T __shfl_up_sync(unsigned, T value, unsigned offset) {
  const unsigned lane = threadIdx.x % 32;
  return lambcast::cuda_on_cpu::shuffle(value, lane >= offset ? lane - offset : lane);
}
template <typename T>
T __shfl_sync(unsigned, T value, unsigned lane, unsigned width = 32) {
  const unsigned first = threadIdx.x % 32 / width * width;
  return lambcast::cuda_on_cpu::shuffle(value, first + lane % width);
}
