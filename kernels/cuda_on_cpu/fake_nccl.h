// NCCL in host memory, for tests without a GPU: one thread drives all ranks inside groups, and the
// outermost ncclGroupEnd() moves the data, so that a rank that calls something else than the
// others, or counts otherwise, is found out. load_nccl() gives it too, without a fault.
#pragma once

#include "kernels/nccl/nccl_api.h"

namespace lambcast::cuda_on_cpu {

enum class FakeFault {
  none,
  flipped_bit,      // in the first byte that any group delivers to rank 0
  swapped_senders,  // what ranks 0 and 1 sent arrives exchanged
  failed_call,      // every collective and message of rank 1
  failed_init,      // rank 1 gets no communicator
  silent_peer,      // rank 1 has died: what needs it never ends, streams stall until an abort
  lost_peer         // the same, and the network says so
};

// The fault lasts until the next call. Calls that fit no other rank's fail with ncclInvalidUsage.
cuda::NcclApi fake_nccl(FakeFault fault = FakeFault::none);

// Since that call: groups that moved data, bytes that the ranks brought to all-reduces,
// communicators made, those taken down inside an open group, and those aborted.
struct FakeCounts {
  int groups = 0;
  std::size_t all_reduced_bytes = 0;
  int made = 0;
  int torn_in_group = 0;
  int aborted = 0;
};
FakeCounts fake_counts();

}  // namespace lambcast::cuda_on_cpu
