// Several NCCL ranks on one GPU, for machines that have but one.
//
// NCCL up to 2.29 refuses two ranks of one host on one device, so every rank claims to be a host of
// its own (NCCL_HOSTID) and reaches the others over sockets. Three ways, best first:
//
//   copies   one process without a launcher: a thread, a stream and a private copy of NCCL for each
//            rank. All share one CUDA context, so their kernels run at the same time.
//   mps      processes of a launcher while an MPS daemon runs, which lets their kernels do so too.
//   slices   processes of a launcher without it: they take turns on the GPU in slices of about
//            2 ms, and every exchange between two ranks costs a slice.
//
// Kernels that wait for each other hang when they cannot run at the same time. So the copies get a
// hardware queue per stream, few channels (thread blocks), modules loaded beforehand, and all that
// NCCL can connect or reserve before its first kernel.
#pragma once

#include <string>

#include "validate/measure/launch.h"

namespace lambcast::validate {

enum class GpuSharing { none, copies, mps, slices };

// At most so many copies per GPU: three streams each in 32 hardware queues.
constexpr int kMostRanksPerGpu = 8;

// What a table measured so says of itself; all empty for `none`.
struct SharingWords {
  std::string how, fit_for, unfit_for;
};
SharingWords words_of(GpuSharing sharing);

// Sets the variables of CUDA and NCCL, those of choice unless they are set. To be called before
// anything of CUDA is.
void prepare_shared_gpu();

// NCCL reads who it is when a library makes its first communicator, and keeps it.
void claim_host(int rank);

// Does an MPS daemon listen where CUDA would look for it (CUDA_MPS_PIPE_DIRECTORY)?
bool mps_runs(const Environment& environment);

}  // namespace lambcast::validate
