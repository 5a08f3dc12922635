#include <catch2/catch.hpp>

#include "kernels/profile.h"
#include "models/device/compute.h"
#include "models/shape/load.h"

namespace lambcast {
namespace {

// The profiler runs on the emulated device (kernels/cuda_on_cpu), so its times are meaningless.
TEST_CASE("devices: a profile of few elements, without layers or cuBLASLt, loads as a device") {
  ProfileOptions options;
  options.min_bytes = options.max_bytes = 4 * 100;
  options.iterations = 1;
  options.warmup = 0;
  const Device device = decode_device(Table::parse(profile_device(options), "profile.toml"));
  CHECK(device.name == "emulated device");
  REQUIRE(find_kernel(device, "onebit_lamb_step") != nullptr);
  CHECK(find_kernel(device, "onebit_lamb_step")->provenance.kind == Kind::measured);
  const auto time = micro_batch_time(device, load_model("bert-large"), "deepspeed", 16, 128);
  CHECK(time.rests_on.front().provenance.kind == Kind::assumed);
  CHECK(time.forward.s() > 0);
}

}  // namespace
}  // namespace lambcast
