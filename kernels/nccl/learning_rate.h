// A learning rate in device memory: a CUDA graph that replays a step uses the rate that was set
// before the launch.
#pragma once

#include <span>

#include "kernels/cuda/device_buffer.h"

namespace lambcast::cuda {

struct LearningRate {
  double host = 0;
  DeviceBuffer<double> device;

  // Allocates on the current device.
  explicit LearningRate(double lr) : host(lr), device(std::span<const double>(&lr, 1)) {}

  cudaError_t set(double lr, cudaStream_t stream) {
    host = lr;
    return cudaMemcpyAsync(device.data(), &host, sizeof host, cudaMemcpyHostToDevice, stream);
  }
};

}  // namespace lambcast::cuda
