// The GPUs of this thread, each with its rank, communicator, stream and two buffers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/cuda/device_buffer.h"
#include "kernels/nccl/nccl_api.h"

namespace lambcast::validate {

// Returns the number of GPUs that CUDA finds. Throws Error{Exit::missing} with one sentence if
// there is none.
int count_gpus();

class Gpu {
 public:
  // Allocates both buffers on `device` and makes it the current one. connect() adds the
  // communicator, which NCCL requires for all GPUs of a thread inside one group.
  Gpu(const cuda::NcclApi& nccl, int device, int rank, int ranks, std::uint64_t buffer_bytes);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  void connect(const ncclUniqueId& id);

  // Copies between host and device on the stream of this GPU, and waits for it.
  void copy(void* to, const void* from, std::size_t bytes) const;

  // Waits until all enqueued work is done. Throws Error{Exit::failure} if NCCL fails meanwhile, for
  // example because another rank died.
  void wait() const;

  const cuda::NcclApi& nccl;
  int device = 0;
  int rank = 0;
  int ranks = 0;
  ncclComm_t communicator = nullptr;
  cudaStream_t stream = nullptr;
  cuda::DeviceBuffer<char> send;
  cuda::DeviceBuffer<char> receive;
};

using Gpus = std::vector<std::unique_ptr<Gpu>>;

std::string gpu_name(int device);

}  // namespace lambcast::validate
