// The collectives of NCCL over the GPUs of this thread, as timed collectives. run() enqueues on
// the streams and returns; fill() and count_wrong() go through host memory.
#pragma once

#include <memory>

#include "validate/measure/gpu.h"
#include "validate/measure/options.h"
#include "validate/measure/timed_collective.h"

namespace lambcast::validate {

// Returns a collective of NCCL. `size` is one of sizes_to_run() and fits the buffers of the GPUs.
// Reductions are sums. As in nccl-tests, all_to_all is a group of one send and one receive per
// peer, and send_recv one send to the next rank and one receive from the previous one. `placement`
// can be in place only if has_in_place(). An in-place reduce would leave data on ranks that the
// check expects to be empty.
std::unique_ptr<TimedCollective> nccl_collective(const MeasureOptions& options, const Gpus& gpus,
                                                 std::uint64_t size, Placement placement);

// Returns compressed_allreduce of kernels/nccl over N = size / 4 elements, for any N: compression,
// exchange, server phase, gathering and decoding, including the kernels. The check
// starts with empty error feedback, on the inputs of compressed_pattern.h. The timing carries error
// feedback from call to call, as training does, with a constant input.
std::unique_ptr<TimedCollective> nccl_compressed_allreduce(const Gpus& gpus, std::uint64_t size);

}  // namespace lambcast::validate
