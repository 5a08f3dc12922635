#include "kernels/nccl/watch.h"

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <thread>

namespace lambcast::cuda {

namespace {

[[noreturn]] void abort_all(const NcclApi& nccl, std::span<const Watched> ranks,
                            const std::string& why) {
  for (const Watched& rank : ranks) {
    cudaSetDevice(rank.device);
    if (*rank.comm != nullptr) nccl.ncclCommAbort(*rank.comm);
    *rank.comm = nullptr;
  }
  throw Error(Exit::failure, why + "; its communicator is aborted");
}

}  // namespace

void check_alive(std::span<const Watched> ranks) {
  for (const Watched& rank : ranks) {
    if (*rank.comm == nullptr) {
      throw Error(Exit::failure, fmt::format("rank {}: its communicator was aborted", rank.rank));
    }
  }
}

void await(const NcclApi& nccl, std::span<const Watched> ranks, double timeout_s) {
  check_alive(ranks);
  const auto start = std::chrono::steady_clock::now();
  for (;;) {
    const Watched* waiting = nullptr;
    for (const Watched& rank : ranks) {
      require(cudaSetDevice(rank.device), "cudaSetDevice");
      ncclResult_t error = ncclSuccess;
      require(nccl, nccl.ncclCommGetAsyncError(*rank.comm, &error), "ncclCommGetAsyncError");
      if (error != ncclSuccess && error != ncclInProgress) {
        abort_all(nccl, ranks,
                  fmt::format("rank {}: {}", rank.rank, nccl.ncclGetErrorString(error)));
      }
      const cudaError_t state = cudaStreamQuery(rank.stream);
      if (state == cudaErrorNotReady)
        waiting = &rank;
      else
        require(state, "work on the stream of a rank");
    }
    if (waiting == nullptr) return;
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
    if (waited.count() > timeout_s) {
      abort_all(nccl, ranks,
                fmt::format("rank {}: no answer from its peers for {} seconds", waiting->rank,
                            timeout_s));
    }
    std::this_thread::yield();
  }
}

}  // namespace lambcast::cuda
