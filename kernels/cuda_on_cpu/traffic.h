// Counts the bytes of device memory that kernels read and write, access by access.
//
// In each kernel a byte counts once as read and once as written, however often it is accessed: the
// traffic of a GPU with a cache for repeated accesses. The kernels of a path are added up. If all
// data of a path stays in the cache until its end, each byte counts once for the path: as read
// unless the path itself wrote it before, and as written.
//
// The kernels are compiled with -fsanitize=thread, so that their accesses call the hooks of
// traffic.cc. Only memory from cudaMalloc after watch_device_memory() is counted. Copies of the
// driver (cudaMemcpyAsync) are not kernels and not counted.
#pragma once

#include <functional>

namespace lambcast::cuda_on_cpu {

struct Traffic {
  double read_bytes = 0, written_bytes = 0;
  double bytes() const { return read_bytes + written_bytes; }
};

// Location of data that a kernel of a path has accessed, when the next kernel begins.
enum class Between { memory, cache };

// Counts accesses to memory that is allocated from this call on.
void watch_device_memory();
// Returns the traffic of all kernels that `path` launches.
Traffic traffic_of(const std::function<void()>& path, Between between = Between::memory);

}  // namespace lambcast::cuda_on_cpu
