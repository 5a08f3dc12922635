// Times work that is enqueued on the current device.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

#include "kernels/cuda/device_buffer.h"

namespace lambcast::cuda {

struct Timing {
  double median_us = 0;
  double spread_us = 0;  // interquartile range
};

class Timer {
 public:
  // Allocates a scratch buffer of twice the L2 cache, which is read before every call
  // (sweep_cache).
  Timer(int iterations, int warmup);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // `work` enqueues on the given stream. `prepare`, if set, runs before each call and is not timed.
  // The status of both is checked.
  using Work = std::function<cudaError_t(cudaStream_t)>;
  Timing time(const char* what, const Work& work, const Work& prepare = {});

  // Called after all iterations are enqueued, while the device works on them; may be empty.
  std::function<void()> meanwhile;

 private:
  int iterations_, warmup_;
  DeviceBuffer<unsigned> scratch_;
  cudaStream_t stream_ = nullptr;
  std::vector<cudaEvent_t> start_, stop_;
};

// Returns median and interquartile range of samples in any order.
Timing summarise(std::vector<double> samples_us);

}  // namespace lambcast::cuda
