// Communicators of the first n GPUs of this machine, for one thread that drives all of them: rank r
// is GPU r.
#pragma once

#include <vector>

#include "kernels/nccl/group.h"

namespace lambcast::cuda {

class LocalGpus {
 public:
  // Makes the communicators. Throws Error{Exit::failure} naming the call that failed.
  explicit LocalGpus(const NcclApi& nccl, int count)
      : nccl_(nccl), comms_(static_cast<std::size_t>(count)) {
    ncclUniqueId id{};
    require(nccl, nccl.ncclGetUniqueId(&id), "ncclGetUniqueId");
    Group group(nccl);
    require(nccl, group.started(), "ncclGroupStart");
    on_each([&](int r) {
      require(nccl, nccl.ncclCommInitRank(&comms_[static_cast<std::size_t>(r)], count, id, r),
              "ncclCommInitRank");
    });
    require(nccl, group.end(), "ncclGroupEnd of ncclCommInitRank");
  }
  ~LocalGpus() {
    for (const ncclComm_t comm : comms_) {
      if (comm != nullptr) nccl_.ncclCommDestroy(comm);  // else it was aborted
    }
  }
  LocalGpus(const LocalGpus&) = delete;
  LocalGpus& operator=(const LocalGpus&) = delete;

  // Returns the address of the communicator, so that it can be aborted (watch.h).
  ncclComm_t* comm_of(int rank) { return &comms_[static_cast<std::size_t>(rank)]; }

  // Calls f(r) for every rank, with its GPU current.
  template <typename F>
  void on_each(F f) const {
    for (int r = 0; r < static_cast<int>(comms_.size()); ++r) {
      require(cudaSetDevice(r), "cudaSetDevice");
      f(r);
    }
  }

 private:
  const NcclApi& nccl_;
  std::vector<ncclComm_t> comms_;
};

}  // namespace lambcast::cuda
