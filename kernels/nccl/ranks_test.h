// For tests: n NCCL ranks on this machine.
//
// By default each rank has a GPU, and one thread drives all of them, as a program does on its node.
// If the environment sets LAMBCAST_SHARE_GPU, all ranks are on the first GPU, with a thread, a
// stream and a copy of NCCL each (shared_gpu.h). This tests several ranks on a machine with one
// GPU.
#pragma once

#include <cstdlib>
#include <exception>
#include <optional>
#include <thread>

#include "kernels/cuda/gpu_test.h"
#include "kernels/nccl/local_gpus.h"
#include "kernels/nccl/shared_gpu.h"

// The emulated device can act as any number of GPUs.
#define NEED_RANKS(count) \
  NEED_GPUS(lambcast::cuda::emulated_device || lambcast::cuda::share_gpu ? 1 : (count))

namespace lambcast::cuda {

// Initialised before the tests, because prepare_shared_gpu() has to run before the first CUDA call.
inline const bool share_gpu = [] {
  const bool asked = !emulated_device && std::getenv("LAMBCAST_SHARE_GPU") != nullptr;
  if constexpr (!emulated_device) {
    if (asked) prepare_shared_gpu();
  }
  return asked;
}();

// A rank on the shared GPU: its stream, and its copy of NCCL with a host identity of its own.
// Streams are made before anything else, so that each has its own hardware queue.
struct Sharer {
  NcclApi nccl;
  cudaStream_t stream = nullptr;
};
inline const Sharer& sharer(int rank) {
  constexpr int most = 4;  // ranks of any test
  static const std::vector<Sharer> all = [] {
    std::vector<Sharer> made(most);
    if constexpr (!emulated_device) {
      for (Sharer& each : made) {
        require(cudaStreamCreateWithFlags(&each.stream, cudaStreamNonBlocking), "cudaStreamCreate");
      }
      const std::vector<NcclApi> copies = load_nccl_copies(most);
      for (int r = 0; r < most; ++r) {
        made[std::size_t(r)].nccl = copies[std::size_t(r)];
        settle_host(copies[std::size_t(r)], r, 0);
      }
      unsetenv("NCCL_HOSTID");
    }
    return made;
  }();
  return all.at(std::size_t(rank));
}

class TestRanks {
 public:
  explicit TestRanks(int count) : count_(count) {
    if (!share_gpu) {
      gpus_.emplace(load_nccl(), count);
      return;
    }
    comms_.resize(std::size_t(count));
    ncclUniqueId id{};
    require(sharer(0).nccl, sharer(0).nccl.ncclGetUniqueId(&id), "ncclGetUniqueId");
    drive([&](const NcclApi& nccl, int rank, int) {
      require(nccl, nccl.ncclCommInitRank(comm_of(rank), count, id, rank), "ncclCommInitRank");
    });
  }
  ~TestRanks() {
    if (!share_gpu) return;
    drive([&](const NcclApi& nccl, int rank, int) {
      if (*comm_of(rank) != nullptr) nccl.ncclCommDestroy(*comm_of(rank));  // else it was aborted
    });
  }
  TestRanks(const TestRanks&) = delete;
  TestRanks& operator=(const TestRanks&) = delete;

  int device(int rank) const { return share_gpu ? 0 : rank; }
  cudaStream_t stream(int rank) const { return share_gpu ? sharer(rank).stream : nullptr; }
  // Returns the address of the communicator, so that it can be aborted (watch.h).
  ncclComm_t* comm_of(int rank) {
    return share_gpu ? &comms_[std::size_t(rank)] : gpus_->comm_of(rank);
  }

  // Calls f(r) for one rank after another, with its GPU current.
  template <typename F>
  void on_each(F f) const {
    for (int r = 0; r < count_; ++r) {
      require(cudaSetDevice(device(r)), "cudaSetDevice");
      f(r);
    }
  }

  // Calls f(nccl, first, count) in each thread with its own ranks, and waits for all threads.
  template <typename F>
  void drive(F f) const {
    if (!share_gpu) {
      f(load_nccl(), 0, count_);
      return;
    }
    require(cudaDeviceSynchronize(),
            "cudaDeviceSynchronize");  // these streams do not wait for the default one
    std::vector<std::exception_ptr> failures(static_cast<std::size_t>(count_));
    std::vector<std::thread> threads;
    for (int r = 0; r < count_; ++r) {
      threads.emplace_back([&, r] {
        try {
          require(cudaSetDevice(0), "cudaSetDevice");
          f(sharer(r).nccl, r, 1);
        } catch (...) {
          failures[std::size_t(r)] = std::current_exception();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::exception_ptr& failure : failures) {
      if (failure != nullptr) std::rethrow_exception(failure);
    }
    require(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }

 private:
  int count_;
  std::optional<LocalGpus> gpus_;
  std::vector<ncclComm_t> comms_;  // communicators of ranks that share a GPU
};

}  // namespace lambcast::cuda
