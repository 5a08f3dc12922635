#include "kernels/nccl/shared_norm.h"

namespace lambcast::cuda {

ncclResult_t share_norm(const NcclApi& nccl, double* squared_norm, ncclComm_t comm,
                        cudaStream_t stream) {
  return nccl.ncclAllReduce(squared_norm, squared_norm, 1, ncclFloat64, ncclAvg, comm, stream);
}

}  // namespace lambcast::cuda
