// Waiting for work among ranks of which one may die. NCCL's kernels wait for a lost peer for ever,
// and so would whoever waits for their stream: await() looks at the communicators meanwhile.
//
//   the network reports an error   ncclCommGetAsyncError; at once, where NCCL sees it
//   a peer is silent               after the timeout
//
// Either ends the communicators of all the ranks given (ncclCommAbort), which lets their kernels
// end, and throws. What the optimizers hold is then undefined where the work had begun: load what
// was saved, over new communicators.
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
