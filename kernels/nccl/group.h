// An NCCL group that is closed also when a call in it fails or throws, so that the communicator can
// still be used or torn down.
#pragma once

#include "kernels/nccl/nccl_api.h"

namespace lambcast::cuda {

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

}  // namespace lambcast::cuda
