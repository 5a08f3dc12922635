#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>

#include "kernels/cuda/device.cuh"

using namespace lambcast::cuda;

TEST_CASE("a grid fills the device, limited by the work and by LAMBCAST_MOST_BLOCKS") {
  const auto blocks = [](std::size_t items) {
    unsigned result = 0;
    REQUIRE(grid_of(nullptr, items, result) == cudaSuccess);
    return result;
  };
  const char* const set = std::getenv("LAMBCAST_MOST_BLOCKS");  // set for the whole test run
  const std::string before = set == nullptr ? "" : set;
  unsetenv("LAMBCAST_MOST_BLOCKS");
  CHECK(blocks(100) == 4);
  CHECK(blocks(3) == 3);
  CHECK(blocks(0) == 1);
  for (const auto& [cap, expected] : {std::pair{"2", 2u}, {"9", 4u}, {"0", 1u}}) {
    setenv("LAMBCAST_MOST_BLOCKS", cap, 1);
    CHECK(blocks(100) == expected);
  }
  if (set == nullptr)
    unsetenv("LAMBCAST_MOST_BLOCKS");
  else
    setenv("LAMBCAST_MOST_BLOCKS", before.c_str(), 1);
}

TEST_CASE("the driver is queried about a kernel once per device, not at every launch") {
  const int kernel = 0;  // gives an unused address
  unsigned blocks = 0;
  const int before = lambcast::cuda_on_cpu::occupancy_questions;
  for (const int device : {0, 0, 1, 1, 0, 1}) {
    REQUIRE(cudaSetDevice(device) == cudaSuccess);
    REQUIRE(grid_of(&kernel, 3, blocks) == cudaSuccess);
    CHECK(blocks <= 3);
  }
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  CHECK(lambcast::cuda_on_cpu::occupancy_questions == before + 2);
}
