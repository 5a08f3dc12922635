#include "kernels/nccl/nccl_api.h"

#include <fmt/format.h>

#include "sim/base/error.h"

namespace lambcast::cuda {

std::string version_of(const NcclApi& nccl) {
  int version = 0;
  require(nccl, nccl.ncclGetVersion(&version), "ncclGetVersion");
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

void require(const NcclApi& nccl, ncclResult_t status, const char* what) {
  if (status == ncclSuccess) return;
  throw Error(Exit::failure, fmt::format("{}: {} ({})", what, nccl.ncclGetErrorString(status),
                                         nccl.ncclGetLastError(nullptr)));
}

}  // namespace lambcast::cuda
