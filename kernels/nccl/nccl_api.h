// NCCL as a table of functions that is loaded on demand instead of linked:
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

// Loads libnccl.so.2 as found by the loader, else the one found by the build; it is loaded once and
// never unloaded. Throws Error{Exit::missing} with one sentence if there is none.
const NcclApi& load_nccl();

// Loads `count` libraries with memory of their own: load_nccl() and copies of its file, which exist
// in the folder for temporary files during loading. Throws Error{Exit::missing} as above and
// Error{Exit::failure} if a copy cannot be made (some 220 MB each).
std::vector<NcclApi> load_nccl_copies(int count);

// Returns the version, such as "2.28.9".
std::string version_of(const NcclApi& nccl);

// Throws Error{Exit::failure} with the name of the call and NCCL's message if `status` is an error.
void require(const NcclApi& nccl, ncclResult_t status, const char* what);

}  // namespace lambcast::cuda
