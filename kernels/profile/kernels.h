// Every kernel of the library as something to be timed at any size.
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

  // The state that every call is timed on, the same before each: weights, momentum, gradient and
  // error around zero; the variance, and u where it stands for one, above it; signs of both kinds.
  cudaError_t refill(cudaStream_t stream) const;

  // The squared norms of the state, by name: not finite where a buffer holds an infinity or a NaN.
  // On those the divisions and roots of the optimizers take their slow paths.
  std::map<std::string, double> squared_norms() const;

  // Device bytes a workbench of so many elements takes.
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
