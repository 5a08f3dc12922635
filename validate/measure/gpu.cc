#include "validate/measure/gpu.h"

#include <fmt/format.h>

#include "sim/base/error.h"

namespace lambcast::validate {

void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  throw Error(Exit::failure, fmt::format("{}: {}", call, cudaGetErrorString(status)));
}

void check(ncclResult_t status, const char* call) {
  if (status == ncclSuccess) return;
  throw Error(Exit::failure, fmt::format("{}: {} ({})", call, ncclGetErrorString(status),
                                         ncclGetLastError(nullptr)));
}

int count_gpus() {
  int gpus = 0;
  const cudaError_t status = cudaGetDeviceCount(&gpus);
  if (status == cudaSuccess && gpus > 0) return gpus;
  throw Error(Exit::missing,
              fmt::format("there is no NVIDIA GPU with a working driver to measure NCCL on ({})",
                          status == cudaSuccess ? "none found" : cudaGetErrorString(status)));
}

Gpu::Gpu(int device_index, int rank_of_all, int all_ranks, std::uint64_t buffer_bytes)
    : device(device_index), rank(rank_of_all), ranks(all_ranks) {
  check(cudaSetDevice(device), "cudaSetDevice");
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  check(cudaMalloc(reinterpret_cast<void**>(&send), buffer_bytes), "cudaMalloc of the send buffer");
  check(cudaMalloc(reinterpret_cast<void**>(&receive), buffer_bytes),
        "cudaMalloc of the receive buffer");
}

Gpu::~Gpu() {
  // Nothing useful can be done about a failure on the way out.
  cudaSetDevice(device);
  if (communicator != nullptr) ncclCommDestroy(communicator);
  if (send != nullptr) cudaFree(send);
  if (receive != nullptr) cudaFree(receive);
  if (stream != nullptr) cudaStreamDestroy(stream);
}

void Gpu::connect(const ncclUniqueId& id) {
  check(cudaSetDevice(device), "cudaSetDevice");
  check(ncclCommInitRank(&communicator, ranks, id, rank), "ncclCommInitRank");
}

std::string gpu_name(int device) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return properties.name;
}

}  // namespace lambcast::validate
