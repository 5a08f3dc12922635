// NCCL in host memory, for tests without a GPU. One thread drives all ranks inside groups, and the
// outermost ncclGroupEnd() moves the data, which detects ranks whose calls or counts differ.
// load_nccl() also returns it, without a fault.
#pragma once

#include "kernels/nccl/nccl_api.h"

namespace lambcast::cuda_on_cpu {

enum class FakeFault {
  none,
  flipped_bit,      // in the first byte that any group delivers to rank 0
  swapped_senders,  // data of ranks 0 and 1 arrive exchanged
  failed_call,      // every collective and message of rank 1 fails
  failed_init,      // rank 1 gets no communicator
  silent_peer,      // rank 1 has died: calls with it never end, and streams stall until an abort
  lost_peer         // the same, but the network reports it
};

// Returns the functions of the fake, with a fault that lasts until the next call of fake_nccl().
// NCCL calls that do not match those of other ranks fail with ncclInvalidUsage.
cuda::NcclApi fake_nccl(FakeFault fault = FakeFault::none);

// Counts since the last fake_nccl(): groups that moved data, bytes that ranks contributed to
// all-reduces, communicators made, destroyed inside an open group, and aborted.
struct FakeCounts {
  int groups = 0;
  std::size_t all_reduced_bytes = 0;
  int made = 0;
  int torn_in_group = 0;
  int aborted = 0;
};
FakeCounts fake_counts();

}  // namespace lambcast::cuda_on_cpu
