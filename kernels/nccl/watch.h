// Waits for work among ranks, one of which may die. NCCL's kernels wait for a lost peer forever,
// and so does a wait for their stream. await() checks the communicators in the meantime.
//
//   the network reports an error   ncclCommGetAsyncError, as soon as NCCL detects it
//   a peer is silent               after the timeout
//
// Either aborts the communicators of all the ranks given (ncclCommAbort), which lets their kernels
// end, and throws. The state of the optimizers is undefined if the work had begun: load a saved
// one, over new communicators.
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
  ncclComm_t* comm = nullptr;  // null where it points to once aborted
  cudaStream_t stream = nullptr;
};

// Returns when the work enqueued on all streams has ended. Throws Error{Exit::failure} as above,
// naming the rank, and the seconds it waited.
void await(const NcclApi& nccl, std::span<const Watched> ranks, double timeout_s);

// Throws Error{Exit::failure} where a communicator has been aborted.
void check_alive(std::span<const Watched> ranks);

}  // namespace lambcast::cuda
