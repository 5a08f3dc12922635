// Three ways to measure several NCCL ranks on one GPU (kernels/nccl/shared_gpu.h), and the use of a
// table measured that way. Best first:
//
//   copies   one process without a launcher: a thread, a stream and a private copy of NCCL for each
//            rank. All share one CUDA context, so their kernels run at the same time.
//   mps      processes of a launcher with an MPS daemon: their kernels run at the same time too.
//   slices   processes of a launcher without it: they take turns on the GPU in slices of about
//            2 ms, and every exchange between two ranks costs a slice.
#pragma once

#include <string>

#include "validate/measure/launch.h"

namespace lambcast::validate {

enum class GpuSharing { none, copies, mps, slices };

// Notes for a table measured with shared GPUs; all empty for `none`.
struct SharingWords {
  std::string how, fit_for, unfit_for;
};
SharingWords words_of(GpuSharing sharing);

// Returns whether an MPS daemon listens where CUDA would search for it (CUDA_MPS_PIPE_DIRECTORY).
bool mps_runs(const Environment& environment);

}  // namespace lambcast::validate
