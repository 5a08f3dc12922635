// Helpers of the tests that need a GPU.
#pragma once

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <random>
#include <span>
#include <vector>

#include "kernels/cuda/device_buffer.h"
#include "kernels/cuda/gpu.h"

// Returns from the test and prints the line that ctest reads as "skipped".
#define NEED_GPUS(count)                                                             \
  do {                                                                               \
    if (const std::string why = lambcast::cuda::gpus_missing(count); !why.empty()) { \
      std::cout << "SKIPPED: " << why << std::endl;                                  \
      return;                                                                        \
    }                                                                                \
  } while (false)

// Skips the test in the same way if the device has fewer free bytes of memory.
#define NEED_BYTES(count)                                                                     \
  do {                                                                                        \
    const std::size_t free = lambcast::cuda::free_bytes();                                    \
    if (free < (count)) {                                                                     \
      std::cout << "SKIPPED: " << (count) / 1e9 << " GB of GPU memory needed, " << free / 1e9 \
                << " free" << std::endl;                                                      \
      return;                                                                                 \
    }                                                                                         \
  } while (false)

namespace lambcast::cuda {

inline std::size_t free_bytes() {
  std::size_t free = 0, total = 0;
  require(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return free;
}

// The emulated device (cuda_on_cpu) runs the same tests with fewer elements and steps.
#ifdef LAMBCAST_CUDA_ON_CPU
constexpr bool emulated_device = true;
#else
constexpr bool emulated_device = false;
#endif
// Number of steps. Tools that watch every access of a GPU set LAMBCAST_TEST_STEPS to a lower one.
inline const unsigned test_steps = [] {
  const char* const asked = std::getenv("LAMBCAST_TEST_STEPS");
  return asked != nullptr ? unsigned(std::atoi(asked)) : emulated_device ? 3u : 100u;
}();
// Enough elements for each block of a full grid to stride several times, for the tests tagged
// [large]. One pass of LAMB over an H200 takes 17 million elements, other kernels take fewer. The
// emulated device has four blocks.
constexpr std::size_t many_passes = emulated_device ? 200'003 : 40'000'003;

inline std::vector<float> random_values(std::size_t count, unsigned seed, double shift = 0) {
  std::mt19937 bits(seed);
  std::vector<float> values(count);
  for (float& x : values) x = static_cast<float>(bits() * 0x1p-32 - 0.5 + shift);
  return values;
}

template <typename T>
DeviceBuffer<T> upload(const std::vector<T>& host) {
  return DeviceBuffer<T>(std::span<const T>(host));
}

// ||a - b|| / ||b||
inline double relative_distance(std::span<const float> a, std::span<const float> b) {
  double difference = 0, norm = 0;
  for (std::size_t e = 0; e < b.size(); ++e) {
    difference += (double(a[e]) - b[e]) * (double(a[e]) - b[e]);
    norm += double(b[e]) * b[e];
  }
  return std::sqrt(difference / norm);
}

}  // namespace lambcast::cuda
