// What kernels move: the bytes of device memory that they read and write, counted access by access.
//
// Of a kernel every byte counts once as read and once as written, however often it is touched: what
// a GPU whose cache holds what is touched again has to move. Sums over the kernels of a path; or,
// where all that a path touches stays in the cache until its end, every byte once for the path: as
// read unless the path itself wrote it before, and as written.
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

// Where what a kernel of a path has touched lies when the next one begins.
enum class Between { memory, cache };

// From now on what is allocated is looked at.
void watch_device_memory();
// Of all kernels that `path` launches.
Traffic traffic_of(const std::function<void()>& path, Between between = Between::memory);

}  // namespace lambcast::cuda_on_cpu
