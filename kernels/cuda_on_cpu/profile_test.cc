#include "kernels/profile.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/profile/kernels.h"
#include "kernels/profile/nvml.h"
#include "models/device/compute.h"
#include "models/shape/load.h"

using namespace lambcast;
using namespace lambcast::cuda;

TEST_CASE("every kernel is timed on a state that is finite and stays so") {
  const Workbench bench(9003);
  REQUIRE(bench.refill(nullptr) == cudaSuccess);
  for (const auto& [buffer, squared_norm] : bench.squared_norms()) {
    INFO(buffer);
    CHECK(squared_norm > 0);
  }
  for (const auto& entry : bench.entries()) {
    INFO(entry.name);
    REQUIRE(bench.refill(nullptr) == cudaSuccess);
    REQUIRE(entry.launch(nullptr) == cudaSuccess);
    for (const auto& [buffer, squared_norm] : bench.squared_norms()) {
      INFO(buffer);
      CHECK(std::isfinite(squared_norm));
    }
  }
}

TEST_CASE("a profile of few elements, without layers or cuBLASLt, is a device at once") {
  ProfileOptions options;
  options.min_bytes = options.max_bytes = 4 * 100;
  options.iterations = 1;
  options.warmup = 0;
  options.layers = false;
  const Device device = decode_device(Table::parse(profile_device(options), "profile.toml"));
  CHECK(device.name == "emulated device");
  const std::string source = device.copy_bandwidth.provenance.source;
  INFO(source);
  CHECK(source.find(", driver 123.45, ") != std::string::npos);
  CHECK(source.find(" (1500 to 1500 while measured), ") != std::string::npos);
  CHECK(source.find(" to 2999 while measured)") != std::string::npos);
  CHECK(source.find("(2999") == std::string::npos);
  REQUIRE(find_kernel(device, "onebit_lamb_step") != nullptr);
  CHECK(find_kernel(device, "onebit_lamb_step")->provenance.kind == Kind::measured);
  const auto time = micro_batch_time(device, load_model("bert-large"), "deepspeed", 16, 128);
  CHECK(time.provenance.kind == Kind::assumed);
  CHECK(time.forward.s() > 0);
}

TEST_CASE("a profile does without the management library, or a GPU it does not know") {
  CHECK(load_nvml("0000:00:00.0"));
  CHECK_FALSE(load_nvml("0000:00:00.0", "libnothing-of-the-kind.so"));
  CHECK_FALSE(load_nvml("0000:00:00.0", "libdl.so.2"));
  CHECK_FALSE(load_nvml("0000:ff:00.0"));
}
