#include "kernels/nccl/shared_norm.h"

#include "kernels/cuda/gpu_test.h"

using namespace lambcast;
using namespace lambcast::cuda;

namespace {

// What each of n GPUs, driven by one thread, holds after sharing `squared_norms`.
std::vector<double> shared(const std::vector<double>& squared_norms) {
  const int n = int(squared_norms.size());
  const NcclApi& nccl = load_nccl();
  std::vector<ncclComm_t> comms(squared_norms.size());
  ncclUniqueId id{};
  require(nccl, nccl.ncclGetUniqueId(&id), "ncclGetUniqueId");
  std::vector<DeviceBuffer<double>> on_device;
  require(nccl, nccl.ncclGroupStart(), "ncclGroupStart");
  for (int r = 0; r < n; ++r) {
    require(cudaSetDevice(r), "cudaSetDevice");
    require(nccl, nccl.ncclCommInitRank(&comms[std::size_t(r)], n, id, r), "ncclCommInitRank");
  }
  require(nccl, nccl.ncclGroupEnd(), "ncclGroupEnd");
  for (int r = 0; r < n; ++r) {
    require(cudaSetDevice(r), "cudaSetDevice");
    on_device.push_back(upload(std::vector<double>{squared_norms[std::size_t(r)]}));
  }
  require(nccl, nccl.ncclGroupStart(), "ncclGroupStart");
  for (int r = 0; r < n; ++r) {
    require(cudaSetDevice(r), "cudaSetDevice");
    require(nccl,
            share_norm(nccl, on_device[std::size_t(r)].data(), comms[std::size_t(r)], nullptr),
            "share_norm");
  }
  require(nccl, nccl.ncclGroupEnd(), "ncclGroupEnd");
  std::vector<double> result;
  for (int r = 0; r < n; ++r) {
    require(cudaSetDevice(r), "cudaSetDevice");
    result.push_back(on_device[std::size_t(r)].to_host()[0]);
  }
  for (const ncclComm_t comm : comms) nccl.ncclCommDestroy(comm);
  return result;
}

}  // namespace

TEST_CASE("the shared norm of one GPU is its own") {
  NEED_GPUS(1);
  CHECK(shared({9.0}) == std::vector<double>{9.0});
}

TEST_CASE("two GPUs share the mean of their squared norms, and an overflow of either") {
  NEED_GPUS(2);
  CHECK(shared({9.0, 0.25}) == std::vector<double>{4.625, 4.625});
  for (const double x : shared({INFINITY, 1.0})) CHECK_FALSE(std::isfinite(x));
  for (const double x : shared({1.0, NAN})) CHECK_FALSE(std::isfinite(x));
}
