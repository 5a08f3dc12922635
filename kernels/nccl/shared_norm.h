// The norm that all ranks clip by in the compression stage, where each holds its own gradient
// (ClipNorm::shared): the root mean square of their norms.
//
//   measure_gradient   on every rank (cuda/gradient.h)
//   share_norm         *squared_norm becomes its mean over the ranks: an all-reduce of 8 bytes
//   gradient_factor    on every rank: the same factor
//
// The mean is infinite or NaN when any rank's is: the check for overflow needs no all-reduce of its
// own, where DeepSpeed sends a byte for it. A double because the square of a norm that fits a float
// may not.
#pragma once

#include "kernels/nccl/nccl_api.h"

namespace lambcast::cuda {

// Enqueues on `stream`; squared_norm is device memory.
ncclResult_t share_norm(const NcclApi& nccl, double* squared_norm, ncclComm_t comm,
                        cudaStream_t stream);

}  // namespace lambcast::cuda
