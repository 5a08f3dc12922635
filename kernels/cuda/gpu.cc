#include "kernels/cuda/gpu.h"

#include <fmt/format.h>

#include "kernels/cuda/device_buffer.h"

namespace lambcast::cuda {
namespace {

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  require(cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute");
  return value;
}

}  // namespace

std::string gpus_missing(int wanted) {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) {
    return fmt::format("no usable NVIDIA GPU: {}", cudaGetErrorString(status));
  }
  if (count < wanted) return fmt::format("{} GPUs needed, {} found", wanted, count);
  return {};
}

GpuDescription describe_gpu() {
  int device = 0, driver = 0, runtime = 0;
  require(cudaGetDevice(&device), "cudaGetDevice");
  require(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  require(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  cudaDeviceProp properties{};
  require(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  char pci_address[32] = "";
  require(cudaDeviceGetPCIBusId(pci_address, sizeof pci_address, device), "cudaDeviceGetPCIBusId");
  return {.name = properties.name,
          .pci_address = pci_address,
          .driver = version_text(driver),
          .runtime = version_text(runtime),
          .memory_bytes = properties.totalGlobalMem,
          .l2_bytes = static_cast<std::size_t>(properties.l2CacheSize),
          .compute_capability = properties.major + properties.minor / 10.0,
          .multiprocessors = properties.multiProcessorCount,
          .clock_mhz = attribute(cudaDevAttrClockRate, device) / 1000,
          .memory_clock_mhz = attribute(cudaDevAttrMemoryClockRate, device) / 1000,
          .memory_bus_bits = properties.memoryBusWidth};
}

}  // namespace lambcast::cuda
