// Owned device memory for host code: tests, the profiler, the NCCL exchange.
//
// Copies and clears run on the legacy default stream, for which non-blocking streams do not wait. A
// constructor therefore returns when the memory is filled, and to_host() waits for all streams of
// the device.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "sim/base/error.h"

namespace lambcast::cuda {

// Throws Error{Exit::failure} with the name of the call if a CUDA call of the host failed.
inline void require(cudaError_t status, const char* what) {
  if (status != cudaSuccess) {
    throw Error(Exit::failure, std::string(what) + ": " + cudaGetErrorString(status));
  }
}

template <typename T>
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(std::size_t count) : count_(count) {
    if (count == 0) return;
    require(cudaMalloc(&data_, count * sizeof(T)), "cudaMalloc");
    require(cudaMemset(data_, 0, count * sizeof(T)), "cudaMemset");
    require(cudaStreamSynchronize(nullptr), "cudaMemset");
  }
  explicit DeviceBuffer(std::span<const T> host) : DeviceBuffer(host.size()) { fill(host); }
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), count_(std::exchange(other.count_, 0)) {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
    return *this;
  }
  ~DeviceBuffer() { cudaFree(data_); }

  T* data() const { return static_cast<T*>(data_); }
  std::size_t size() const { return count_; }
  // Waits for the device, then copies.
  std::vector<T> to_host() const {
    std::vector<T> host(count_);
    require(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    require(cudaMemcpy(host.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost),
            "cudaMemcpy");
    return host;
  }
  // Replaces all values in place. Waits for the device before and after.
  void assign(std::span<const T> host) {
    require(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    fill(host);
  }

 private:
  void fill(std::span<const T> host) {
    if (count_ == 0) return;
    require(cudaMemcpy(data_, host.data(), host.size_bytes(), cudaMemcpyHostToDevice),
            "cudaMemcpy");
    require(cudaStreamSynchronize(nullptr), "cudaMemcpy");
  }

  void* data_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace lambcast::cuda
