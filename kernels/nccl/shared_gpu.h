// Several NCCL ranks on one GPU, for machines with a single GPU.
//
// NCCL up to 2.29 rejects two ranks of one host on one device, so each rank claims to be a host of
// its own (NCCL_HOSTID) and reaches the others over sockets. NCCL keeps its host identity once per
// loaded library. The ranks of a process are therefore threads, each with a copy of the library
// (load_nccl_copies) and a stream that does not wait for the default one.
//
// Kernels that wait for each other hang if they cannot run at the same time. So the ranks get a
// hardware queue per stream, few channels (thread blocks), modules loaded beforehand, and all that
// NCCL can connect or reserve before its first kernel. No rank may wait for the whole device, as
// cudaFree and the default stream do, while kernels of other ranks wait for it.
#pragma once

#include "kernels/nccl/nccl_api.h"

namespace lambcast::cuda {

// At most so many copies per GPU: three streams each in 32 hardware queues.
constexpr int kMostRanksPerGpu = 8;

// Sets the variables of CUDA and NCCL, those of choice unless they are set. To be called before
// anything of CUDA is.
void prepare_shared_gpu();

// NCCL reads its host identity when a library makes its first communicator, and keeps it.
void claim_host(int rank);

// Makes this copy of NCCL claim to be the host of `rank`, by a communicator of that rank alone.
// Throws Error{Exit::failure} naming the call that failed.
void settle_host(const NcclApi& nccl, int rank, int device);

}  // namespace lambcast::cuda
