#include "kernels/nccl/shared_gpu.h"

#include <fmt/format.h>

#include <cstdlib>

#include "kernels/cuda/device_buffer.h"

namespace lambcast::cuda {

void prepare_shared_gpu() {
  constexpr bool kForced = true;
  const auto set = [](const char* name, const char* value, bool forced = false) {
    setenv(name, value, forced ? 1 : 0);
  };
  set("NCCL_NET", "Socket", kForced);
  set("NCCL_NET_PLUGIN", "none", kForced);
  set("NCCL_IB_DISABLE", "1", kForced);
  set("NCCL_P2P_DISABLE", "1", kForced);
  set("NCCL_SHM_DISABLE", "1", kForced);
  set("NCCL_MNNVL_ENABLE", "0", kForced);
  set("NCCL_NVLS_ENABLE", "0", kForced);
  set("NCCL_MAX_NCHANNELS", "4");
  set("NCCL_RUNTIME_CONNECT", "0");  // connect when a communicator is made, not while kernels run
  set("NCCL_SET_STACK_SIZE", "1");   // no new local memory while kernels run
  set("NCCL_RAS_ENABLE", "0");
  set("CUDA_DEVICE_MAX_CONNECTIONS", "32");
  set("CUDA_MODULE_LOADING", "EAGER");
}

void claim_host(int rank) { setenv("NCCL_HOSTID", fmt::format("rank{}", rank).c_str(), 1); }

void settle_host(const NcclApi& nccl, int rank, int device) {
  claim_host(rank);
  require(cudaSetDevice(device), "cudaSetDevice");
  ncclUniqueId id{};
  require(nccl, nccl.ncclGetUniqueId(&id), "ncclGetUniqueId");
  ncclComm_t comm = nullptr;
  require(nccl, nccl.ncclCommInitRank(&comm, 1, id, 0), "ncclCommInitRank");
  require(nccl, nccl.ncclCommDestroy(comm), "ncclCommDestroy");
}

}  // namespace lambcast::cuda
