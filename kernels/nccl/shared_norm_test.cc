#include "kernels/nccl/shared_norm.h"

#include "kernels/cuda/gpu_test.h"
#include "kernels/nccl/local_gpus.h"

using namespace lambcast;
using namespace lambcast::cuda;

namespace {

// What each of n GPUs, driven by one thread, holds after sharing `squared_norms`.
std::vector<double> shared(const std::vector<double>& squared_norms) {
  const NcclApi& nccl = load_nccl();
  const LocalGpus gpus(nccl, int(squared_norms.size()));
  std::vector<DeviceBuffer<double>> on_device;
  gpus.on_each([&](int r) {
    on_device.push_back(upload(std::vector<double>{squared_norms[std::size_t(r)]}));
  });
  Group group(nccl);
  gpus.on_each([&](int r) {
    require(nccl, share_norm(nccl, on_device[std::size_t(r)].data(), gpus.comm(r), nullptr),
            "share_norm");
  });
  require(nccl, group.end(), "ncclGroupEnd");
  std::vector<double> result;
  gpus.on_each([&](int r) { result.push_back(on_device[std::size_t(r)].to_host()[0]); });
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
