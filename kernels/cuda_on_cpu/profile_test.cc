#include "kernels/profile.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/profile/kernels.h"

using namespace lambcast;
using namespace lambcast::cuda;

TEST_CASE("every kernel is timed on a finite state that is the same before each call") {
  for (const std::size_t elements : {std::size_t{1}, std::size_t{20000}}) {
    const Workbench bench(elements);
    REQUIRE(bench.refill(nullptr) == cudaSuccess);
    const auto before = bench.squared_norms();
    for (const auto& [buffer, squared_norm] : before) {
      INFO(buffer);
      CHECK(squared_norm > 0);
    }
    for (const auto& entry : bench.entries()) {
      INFO(entry.name);
      for (int call = 0; call < 2; ++call) REQUIRE(entry.launch(nullptr) == cudaSuccess);
      for (const auto& [buffer, squared_norm] : bench.squared_norms()) {
        INFO(buffer);
        CHECK(std::isfinite(squared_norm));
      }
      REQUIRE(bench.refill(nullptr) == cudaSuccess);
      CHECK(bench.squared_norms() == before);
    }
  }
}
