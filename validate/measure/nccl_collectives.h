// The collectives of NCCL over the GPUs of this thread, as timed collectives. run() enqueues on
// the streams and returns; fill() and count_wrong() go through host memory.
#pragma once

#include <memory>

#include "validate/measure/gpu.h"
#include "validate/measure/options.h"
#include "validate/measure/timed_collective.h"

namespace lambcast::validate {

// `size` is one of sizes_to_run() and fits the buffers of the GPUs. fp32, sum. all_to_all is a
// group of one send and one receive per peer, send_recv one send to the next rank and one receive
// from the one before: what nccl-tests does. In place there are those that NCCL documents so:
// all_reduce, all_gather, reduce_scatter, broadcast; none is returned for the others.
std::unique_ptr<TimedCollective> nccl_collective(const MeasureOptions& options, const Gpus& gpus,
                                                 std::uint64_t size, Placement placement);

// compressed_allreduce of kernels/nccl over N = size / 4 elements, any number of them: compression,
// exchange, server phase, gathering and decoding, the kernels included. Checked from zero errors
// with the inputs of compressed_pattern.h; timed with errors that go on from call to call, as in
// training, and an input that stays.
std::unique_ptr<TimedCollective> nccl_compressed_allreduce(const Gpus& gpus, std::uint64_t size);

}  // namespace lambcast::validate
