#include "kernels/nccl/shared_norm.h"

#include "kernels/nccl/ranks_test.h"

using namespace lambcast;
using namespace lambcast::cuda;

namespace {

// Returns the value on each rank after sharing `squared_norms`.
std::vector<double> shared(const std::vector<double>& squared_norms) {
  TestRanks gpus(int(squared_norms.size()));
  std::vector<DeviceBuffer<double>> on_device;
  gpus.on_each([&](int r) {
    on_device.push_back(upload(std::vector<double>{squared_norms[std::size_t(r)]}));
  });
  gpus.drive([&](const NcclApi& nccl, int first, int count) {
    Group group(nccl);
    for (int r = first; r < first + count; ++r) {
      require(cudaSetDevice(gpus.device(r)), "cudaSetDevice");
      require(nccl,
              share_norm(nccl, on_device[std::size_t(r)].data(), *gpus.comm_of(r), gpus.stream(r)),
              "share_norm");
    }
    require(nccl, group.end(), "ncclGroupEnd");
  });
  std::vector<double> result;
  gpus.on_each([&](int r) { result.push_back(on_device[std::size_t(r)].to_host()[0]); });
  return result;
}

}  // namespace

TEST_CASE("the shared norm of a single GPU is its own norm") {
  NEED_GPUS(1);
  CHECK(shared({9.0}) == std::vector<double>{9.0});
}

TEST_CASE("two GPUs share the mean of their squared norms, and an overflow of either") {
  NEED_RANKS(2);
  CHECK(shared({9.0, 0.25}) == std::vector<double>{4.625, 4.625});
  for (const double x : shared({INFINITY, 1.0})) CHECK_FALSE(std::isfinite(x));
  for (const double x : shared({1.0, NAN})) CHECK_FALSE(std::isfinite(x));
}
