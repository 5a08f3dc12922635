// Every kernel of the library, for timing at any size.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/profile/document.h"
#include "kernels/profile/timing.h"

namespace lambcast::cuda {

// The device memory that all kernels share: one optimizer state of `elements` elements.
class Workbench {
 public:
  explicit Workbench(std::size_t elements);
  ~Workbench();

  struct Entry {
    std::string name;
    double bytes_per_element = 0;  // bytes that the kernel must move
    std::function<cudaError_t(cudaStream_t)> launch;
  };
  // Returns the kernels. The first is "copy": cudaMemcpyAsync from device to device, 8 bytes per
  // element.
  std::vector<Entry> entries() const;

  // Sets the state on which every call is timed: weights, momentum, gradient and error around zero;
  // the variance, and u, which is used as a second variance, above zero; signs of both kinds.
  cudaError_t refill(cudaStream_t stream) const;

  // Returns the squared norms of the buffers, by name. A norm that is not finite shows an infinity
  // or a NaN, for which the divisions and roots of the optimizers take their slow paths.
  std::map<std::string, double> squared_norms() const;

  // Returns the bytes of device memory that a workbench of `elements` elements takes.
  static std::size_t bytes(std::size_t elements);

 private:
  struct Memory;
  std::vector<Entry> adam_entries() const;  // Adam and its 1-bit variants
  std::vector<Entry> lamb_entries() const;

  std::unique_ptr<Memory> memory_;
};

// Ranks whose signs the server kernel merges.
constexpr int profiled_ranks = 8;

// Times all kernels at all sizes, each call on the same finite state; calls `progress` with one
// line per size.
std::vector<KernelTimes> time_kernels(Timer& timer, const std::vector<std::size_t>& sizes,
                                      const std::function<void(std::string_view)>& progress);

}  // namespace lambcast::cuda
