// Waits for work of several ranks, one of which may die. NCCL's kernels wait forever for a lost
// peer, and so would a wait for their stream. await() checks the communicators in the meantime.
//
//   the network reports an error   ncclCommGetAsyncError, as soon as NCCL detects it
//   a peer is silent               after the timeout
//
// Either case aborts the communicators of all given ranks (ncclCommAbort), which lets their kernels
// end, and throws. The state of the optimizers is undefined if the work had begun: load a saved
// one, with new communicators.
//
// Not watched: the call that connects two ranks for the first time, in which NCCL itself may wait.
#pragma once

#include <span>

#include "kernels/cuda/device_buffer.h"
#include "kernels/nccl/nccl_api.h"

namespace lambcast::cuda {

struct Watched {
  int rank = 0;
  int device = 0;
  ncclComm_t* comm = nullptr;  // points to null if it was aborted
  cudaStream_t stream = nullptr;
};

// Returns when the work on all streams has ended. Throws Error{Exit::failure} as above, naming the
// rank and the seconds waited.
void await(const NcclApi& nccl, std::span<const Watched> ranks, double timeout_s);

// Throws Error{Exit::failure} if a communicator has been aborted.
void check_alive(std::span<const Watched> ranks);

}  // namespace lambcast::cuda
