#include "validate/measure/gpu.h"

#include <fmt/format.h>

#include <exception>
#include <thread>

#include "sim/base/error.h"

namespace lambcast::validate {

using cuda::require;

int count_gpus() {
  int gpus = 0;
  const cudaError_t status = cudaGetDeviceCount(&gpus);
  if (status == cudaSuccess && gpus > 0) return gpus;
  throw Error(Exit::missing,
              fmt::format("there is no NVIDIA GPU with a working driver to measure NCCL on ({})",
                          status == cudaSuccess ? "none found" : cudaGetErrorString(status)));
}

Gpu::Gpu(const cuda::NcclApi& library, int device_index, int rank_of_all, int all_ranks,
         std::uint64_t buffer_bytes)
    : nccl(library), device(device_index), rank(rank_of_all), ranks(all_ranks) {
  require(cudaSetDevice(device), "cudaSetDevice");
  require(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  send = cuda::DeviceBuffer<char>(buffer_bytes);
  receive = cuda::DeviceBuffer<char>(buffer_bytes);
  // Waits, since the buffers are cleared asynchronously.
  require(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
}

Gpu::~Gpu() {
  // Ignores errors of the clean-up, which cannot be handled. After a failure, kernels may wait for
  // ranks that are gone; ncclCommAbort() ends them.
  cudaSetDevice(device);
  if (communicator != nullptr) {
    const bool failed = std::uncaught_exceptions() > 0;
    failed ? nccl.ncclCommAbort(communicator) : nccl.ncclCommDestroy(communicator);
  }
  if (stream != nullptr) cudaStreamDestroy(stream);
}

void Gpu::connect(const ncclUniqueId& id) {
  require(cudaSetDevice(device), "cudaSetDevice");
  require(nccl, nccl.ncclCommInitRank(&communicator, ranks, id, rank), "ncclCommInitRank");
}

void Gpu::copy(void* to, const void* from, std::size_t bytes) const {
  require(cudaSetDevice(device), "cudaSetDevice");
  require(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream), "cudaMemcpyAsync");
  require(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
}

void Gpu::wait() const {
  require(cudaSetDevice(device), "cudaSetDevice");
  for (;;) {
    const cudaError_t status = cudaStreamQuery(stream);
    if (status == cudaSuccess) return;
    if (status != cudaErrorNotReady) require(status, "cudaStreamQuery");
    // A kernel that waits for a missing rank never ends, and only NCCL reports the failure.
    ncclResult_t failure = ncclSuccess;
    require(nccl, nccl.ncclCommGetAsyncError(communicator, &failure), "ncclCommGetAsyncError");
    require(nccl, failure, "a collective of NCCL");
    std::this_thread::yield();
  }
}

std::string gpu_name(int device) {
  cudaDeviceProp properties{};
  require(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return properties.name;
}

}  // namespace lambcast::validate
