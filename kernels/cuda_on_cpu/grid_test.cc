#include <catch2/catch.hpp>
#include <cstdlib>

#include "kernels/cuda/device.cuh"

using namespace lambcast::cuda;

TEST_CASE("a grid fills the device, and no more than the work or LAMBCAST_MOST_BLOCKS want") {
  const auto blocks = [](std::size_t items) {
    unsigned result = 0;
    REQUIRE(grid_of(nullptr, items, result) == cudaSuccess);
    return result;
  };
  CHECK(blocks(100) == 4);
  CHECK(blocks(3) == 3);
  CHECK(blocks(0) == 1);
  for (const auto& [cap, expected] : {std::pair{"2", 2u}, {"9", 4u}, {"0", 1u}}) {
    setenv("LAMBCAST_MOST_BLOCKS", cap, 1);
    CHECK(blocks(100) == expected);
  }
  unsetenv("LAMBCAST_MOST_BLOCKS");
}
