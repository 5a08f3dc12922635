// Network traffic of DeepSpeed's compressed_allreduce, shared by the training step, the stand-alone
// collective and the calibration.
//
// A buffer of Np elements, padded to a multiple of n * lcm(n, 8), is summed over n ranks in two
// phases:
//
//   scatter   worker signs, Np/8 bytes, all-to-all; 4-byte worker scales all-gathered
//   gather    server signs, Np/8 bytes, all-gathered; 4-byte server scales all-gathered
//
// Sent per rank: 2 (n-1)/n Np/8 + 8 (n-1) bytes. The mpi backend writes the scatter by hand, as n
// gathers of signs and n of scales that are waited for together (algorithm deepspeed_gather). If it
// copies through host memory, a barrier follows the gather. Not included: kernels before, between
// and after the phases (models/training/plan/compressed_allreduce.h), and host copies
// (kernels/staging.h). Source: deepspeed/runtime/comm/{nccl,mpi,compressed}.py.
#pragma once

#include <string_view>
#include <vector>

#include "sim/collectives/backend.h"
#include "sim/collectives/schedule.h"

namespace lambcast {

struct ExchangeMessage {
  std::string_view name;
  Op op = Op::all_gather;
  Bytes bytes;                   // whole buffer, as Op counts it
  std::string_view algorithm{};  // empty: the library's choice
};

// The messages of a phase are sent one after another.
struct CompressedExchange {
  std::vector<ExchangeMessage> scatter, gather;

  std::vector<ExchangeMessage> messages() const;  // messages of both phases
};

// Returns the exchange of `padded` elements over `ranks` ranks.
CompressedExchange compressed_exchange(double padded, int ranks, Backend backend);

}  // namespace lambcast
