// Several NCCL ranks on one GPU, for machines with a single GPU.
//
// NCCL up to 2.29 rejects two ranks of one host on one device, so each rank claims to be on a host
// of its own (NCCL_HOSTID) and reaches the others over sockets. NCCL keeps its host identity once
// per loaded library. The ranks of a process are therefore threads, each with a copy of the library
// (load_nccl_copies) and a stream that does not wait for the default one.
//
// Kernels that wait for each other hang if they cannot run at the same time. So the ranks get a
// hardware queue per stream, few channels (thread blocks), modules loaded beforehand, and
// connections and memory that NCCL makes before its first kernel. No rank may wait for the whole
// device, as cudaFree and the default stream do, while kernels of other ranks wait for it.
#pragma once

#include "kernels/nccl/nccl_api.h"

namespace lambcast::cuda {

// Most ranks per GPU: three streams each, in 32 hardware queues.
constexpr int kMostRanksPerGpu = 8;

// Sets environment variables of CUDA and NCCL. Variables that are a user's choice are set only if
// they are unset. Call it before any CUDA function.
void prepare_shared_gpu();

// Sets the host identity of `rank`. NCCL reads it when a library makes its first communicator, and
// keeps it.
void claim_host(int rank);

// Makes this copy of NCCL claim to be on the host of `rank`, with a communicator of only that rank.
// Throws Error{Exit::failure} naming the call that failed.
void settle_host(const NcclApi& nccl, int rank, int device);

}  // namespace lambcast::cuda
