// The collectives of NCCL over the GPUs of this process, as timed collectives. run() enqueues on
// the streams and returns; fill() and count_wrong() go through host memory.
#pragma once

#include <memory>
#include <vector>

#include "validate/measure/gpu.h"
#include "validate/measure/options.h"
#include "validate/measure/timed_collective.h"

namespace lambcast::validate {

using Gpus = std::vector<std::unique_ptr<Gpu>>;

// `size` is one of sizes_to_run() and fits the buffers of the GPUs. fp32, sum. all_to_all is a
// group of one send and one receive per peer, send_recv one send to the next rank and one receive
// from the one before: what nccl-tests does.
std::unique_ptr<TimedCollective> nccl_collective(const MeasureOptions& options, const Gpus& gpus,
                                                 std::uint64_t size);

// The exchange inside compressed_allreduce as DeepSpeed's deepspeed/runtime/comm/nccl.py does it,
// four collectives one after the other, with N = size / 4 elements over n ranks: all-to-all of
// N / 8 bytes of packed worker signs, all-gather of one fp32 scale per rank, all-gather of the
// N / (8 n) bytes of server signs, all-gather of one server scale. No compression kernels.
std::unique_ptr<TimedCollective> deepspeed_nccl_exchange(const Gpus& gpus, std::uint64_t size);

}  // namespace lambcast::validate
