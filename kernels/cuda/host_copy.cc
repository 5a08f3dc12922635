#include "kernels/cuda/host_copy.h"

#include <cstdlib>
#include <cstring>

#include "kernels/cuda/device_buffer.h"

namespace lambcast::cuda {

HostBuffer::HostBuffer(std::size_t bytes, HostMemory kind) : kind_(kind) {
  if (kind == HostMemory::pinned) {
    require(cudaMallocHost(&data_, bytes), "cudaMallocHost");
  } else {
    data_ = std::malloc(bytes);
    if (data_ == nullptr) throw Error(Exit::failure, "no host memory for a staging buffer");
  }
  std::memset(data_, 0, bytes);
}

HostBuffer::~HostBuffer() {
  if (kind_ == HostMemory::pinned) {
    cudaFreeHost(data_);
  } else {
    std::free(data_);
  }
}

cudaError_t staging_copies(const ChunkLayout& layout, void* host, void* device,
                           cudaStream_t stream) {
  for (const StagingCopy& copy : lambcast::staging_copies(layout).copies()) {
    for (int i = 0; i < copy.times; ++i) {
      const auto e =
          copy.to_host ? cudaMemcpyAsync(host, device, copy.bytes, cudaMemcpyDeviceToHost, stream)
                       : cudaMemcpyAsync(device, host, copy.bytes, cudaMemcpyHostToDevice, stream);
      if (e != cudaSuccess) return e;
    }
  }
  return cudaSuccess;
}

}  // namespace lambcast::cuda
