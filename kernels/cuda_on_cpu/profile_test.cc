#include "kernels/profile.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/profile/kernels.h"
#include "kernels/profile/nvml.h"

using namespace lambcast;
using namespace lambcast::cuda;

TEST_CASE("every kernel is timed with finite state, which stays finite") {
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

TEST_CASE("a profile states the driver and the clocks during the measurement") {
  ProfileOptions options;
  options.min_bytes = options.max_bytes = 4;
  options.iterations = 1;
  options.warmup = 0;
  const std::string profile = profile_device(options);
  INFO(profile);
  for (const char* text : {", driver 123.45, ", " (1500 to 1500 while measured), ",
                           " to 2999 while measured)", "# no matrix products: "}) {
    CHECK(profile.find(text) != std::string::npos);
  }
  CHECK(profile.find("(2999") == std::string::npos);
}

TEST_CASE("a profile works without the management library and with an unknown GPU") {
  CHECK(load_nvml("0000:00:00.0"));
  CHECK_FALSE(load_nvml("0000:00:00.0", "libnothing-of-the-kind.so"));
  CHECK_FALSE(load_nvml("0000:00:00.0", "libdl.so.2"));
  CHECK_FALSE(load_nvml("0000:ff:00.0"));
}
