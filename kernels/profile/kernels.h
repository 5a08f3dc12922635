// Every kernel of the library as something to be timed at any size.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/profile/document.h"
#include "kernels/profile/timing.h"

namespace lambcast::cuda {

// The device memory all kernels share: one optimizer state of `elements` elements.
class Workbench {
 public:
  explicit Workbench(std::size_t elements);
  ~Workbench();

  struct Entry {
    std::string name;
    double bytes_per_element = 0;  // what the kernel must move
    std::function<cudaError_t(cudaStream_t)> launch;
  };
  // "copy" first: cudaMemcpyAsync device to device, 8 bytes per element.
  std::vector<Entry> entries() const;

  // Device bytes a workbench of so many elements takes.
  static std::size_t bytes(std::size_t elements);

 private:
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

// Ranks whose signs the server kernel merges.
constexpr int profiled_ranks = 8;

// Times all kernels at all sizes; calls `progress` with one line per size.
std::vector<KernelTimes> time_kernels(Timer& timer, const std::vector<std::size_t>& sizes,
                                      const std::function<void(std::string_view)>& progress);

}  // namespace lambcast::cuda
