// What kernels move: the bytes of device memory that they read and write, counted access by access.
//
// Of a kernel every byte counts once as read and once as written, however often it is touched: what
// a GPU whose cache holds what is touched again has to move. Sums over the kernels of a path.
//
// Linked with kernels that are compiled with -fsanitize=thread: their accesses call hooks that are
// here. Device memory is what cudaMalloc gives while anybody watches; copies of the driver
// (cudaMemcpyAsync) are no kernels and are not seen.
#pragma once

#include <functional>

namespace lambcast::cuda_on_cpu {

struct Traffic {
  double read_bytes = 0, written_bytes = 0;
  double bytes() const { return read_bytes + written_bytes; }
};

// From now on what is allocated is looked at.
void watch_device_memory();
// Of all kernels that `path` launches.
Traffic traffic_of(const std::function<void()>& path);

}  // namespace lambcast::cuda_on_cpu
