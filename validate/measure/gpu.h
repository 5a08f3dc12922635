// The GPUs of this process, each with its rank, communicator, stream and two buffers; and the
// checks around every call of CUDA and NCCL.
#pragma once

#include <cuda_runtime.h>
#include <nccl.h>

#include <cstdint>
#include <string>
#include <vector>

namespace lambcast::validate {

// Throw Error{Exit::failure} with the call and what the library says about it.
void check(cudaError_t status, const char* call);
void check(ncclResult_t status, const char* call);

// How many GPUs CUDA sees. Throws Error{Exit::missing} with one sentence where there is none.
int count_gpus();

class Gpu {
 public:
  // Allocates both buffers on `device` and makes it the current one. The communicator follows
  // with connect(), which NCCL wants called for all GPUs of a process inside one group.
  Gpu(int device, int rank, int ranks, std::uint64_t buffer_bytes);
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  void connect(const ncclUniqueId& id);

  int device = 0;
  int rank = 0;
  int ranks = 0;
  ncclComm_t communicator = nullptr;
  cudaStream_t stream = nullptr;
  char* send = nullptr;
  char* receive = nullptr;
};

std::string gpu_name(int device);

}  // namespace lambcast::validate
