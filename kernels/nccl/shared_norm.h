// The norm for clipping on all ranks in the compression stage, when each has its own gradient
// (ClipNorm::shared): the root mean square of their norms.
//
//   measure_gradient   on every rank (cuda/gradient.h)
//   share_norm         *squared_norm becomes its mean over the ranks: an all-reduce of 8 bytes
//   gradient_factor    on every rank: the same factor
//
// The mean is infinite or NaN if any rank's norm is, so the overflow check needs no all-reduce of
// its own, for which DeepSpeed sends a byte. It is a double because the square of a float norm may
// exceed a float.
#pragma once

#include "kernels/nccl/nccl_api.h"

namespace lambcast::cuda {

// Enqueues on `stream`; squared_norm is device memory.
ncclResult_t share_norm(const NcclApi& nccl, double* squared_norm, ncclComm_t comm,
                        cudaStream_t stream);

}  // namespace lambcast::cuda
