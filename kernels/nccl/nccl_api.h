// NCCL as a table of functions, loaded when a program needs it rather than linked:
//
//   * the program also starts without libnccl, and can report that;
//   * NCCL keeps its host identity (NCCL_HOSTID) once per loaded library. Several ranks on one GPU
//     in one process need several libraries, and a communicator works only with its own table.
#pragma once

#include <nccl.h>

#include <string>
#include <vector>

namespace lambcast::cuda {

#define LAMBCAST_NCCL_FUNCTIONS(F) \
  F(ncclGetVersion)                \
  F(ncclGetErrorString)            \
  F(ncclGetLastError)              \
  F(ncclGetUniqueId)               \
  F(ncclCommInitRank)              \
  F(ncclCommDestroy)               \
  F(ncclCommAbort)                 \
  F(ncclCommGetAsyncError)         \
  F(ncclGroupStart)                \
  F(ncclGroupEnd)                  \
  F(ncclAllReduce)                 \
  F(ncclAllGather)                 \
  F(ncclReduceScatter)             \
  F(ncclBroadcast)                 \
  F(ncclReduce)                    \
  F(ncclSend)                      \
  F(ncclRecv)

struct NcclApi {
#define LAMBCAST_DECLARE(function) decltype(&::function) function = nullptr;
  LAMBCAST_NCCL_FUNCTIONS(LAMBCAST_DECLARE)
#undef LAMBCAST_DECLARE
};

// libnccl.so.2 as the loader finds it, else the one the build found; loaded once and never
// unloaded. Throws Error{Exit::missing} with one sentence where there is none.
const NcclApi& load_nccl();

// `count` libraries with memory of their own: load_nccl() and copies of its file, which lie in the
// folder for temporary files while they are loaded. Throws Error{Exit::missing} as above and
// Error{Exit::failure} when a copy cannot be made (some 220 MB each).
std::vector<NcclApi> load_nccl_copies(int count);

// "2.28.9"
std::string version_of(const NcclApi& nccl);

// Throws Error{Exit::failure} naming the call and what NCCL says about it.
void require(const NcclApi& nccl, ncclResult_t status, const char* what);

}  // namespace lambcast::cuda
