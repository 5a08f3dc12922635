// The two kinds of host memory for a staged exchange, and the staged copies themselves (staging.h).
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/staging.h"

namespace lambcast::cuda {

enum class HostMemory {
  pageable,  // from malloc: the driver copies through a buffer of its own
  pinned,    // page-locked: the device copies directly
};

// Owned host memory of either kind; every page has been touched.
class HostBuffer {
 public:
  HostBuffer(std::size_t bytes, HostMemory kind);
  ~HostBuffer();
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;
  void* data() const { return data_; }

 private:
  void* data_ = nullptr;
  HostMemory kind_;
};

// Enqueues the staged copies one after another, between the starts of `host` and `device`, which
// have staging_bytes(layout) each. Copies through pageable memory return only after they are
// staged, as in DeepSpeed.
cudaError_t staging_copies(const ChunkLayout& layout, void* host, void* device,
                           cudaStream_t stream);

}  // namespace lambcast::cuda
