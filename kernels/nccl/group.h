// Work of one thread on several GPUs.
#pragma once

#include <span>

#include "kernels/cuda/device_buffer.h"
#include "kernels/nccl/nccl_api.h"

namespace lambcast::cuda {

// An NCCL group that is closed even if a call in it fails or throws, so that the communicator can
// still be used or destroyed.
class Group {
 public:
  explicit Group(const NcclApi& nccl) : nccl_(nccl), started_(nccl.ncclGroupStart()) {
    open_ = started_ == ncclSuccess;
  }
  ~Group() {
    if (open_) nccl_.ncclGroupEnd();
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  ncclResult_t started() const { return started_; }
  ncclResult_t end() {
    open_ = false;
    return nccl_.ncclGroupEnd();
  }

 private:
  const NcclApi& nccl_;
  ncclResult_t started_;
  bool open_ = false;
};

// Calls enqueue(rank) with the device of each rank current.
template <typename Rank, typename Enqueue>
void on_each(std::span<const Rank> ranks, Enqueue enqueue) {
  for (const Rank& rank : ranks) {
    require(cudaSetDevice(rank.device), "cudaSetDevice");
    enqueue(rank);
  }
}

// Works as on_each(), within one NCCL group.
template <typename Rank, typename Enqueue>
void in_group(const NcclApi& nccl, std::span<const Rank> ranks, Enqueue enqueue) {
  Group group(nccl);
  require(nccl, group.started(), "ncclGroupStart");
  on_each(ranks, enqueue);
  require(nccl, group.end(), "ncclGroupEnd");
}

}  // namespace lambcast::cuda
