// The state that a rank needs to continue elsewhere: one buffer per rank, which the caller stores.
// It begins with lines of text that name the optimizer, rank and tensors; numbers and device memory
// in little-endian binary form follow. Error feedback is saved unresolved (cuda/compression.h), so
// that a run that is saved, loaded and continued has the same bits as one that never stopped.
//
// An optimizer lists its state once, in each_state(self, visit), for saving and loading.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/cuda/device_buffer.h"
#include "kernels/layout.h"

namespace lambcast::cuda {

// Properties that must be equal when a state is saved and loaded.
struct StateLayout {
  std::string_view optimizer;
  int ranks = 1;
  int rank = 0;
  Padding padding = Padding::excluded;
  bool persistent_tail = false;
  const TensorLayout* tensors = nullptr;
  std::size_t never_freezing = 0;
};
// Returns the text header of a saved state.
std::string head_of(const StateLayout& layout);

class StateWriter {
 public:
  explicit StateWriter(std::string_view head);
  void operator()(double number) { append(&number, sizeof number); }
  void operator()(int number) { (*this)(static_cast<double>(number)); }
  template <typename T>
  void operator()(const DeviceBuffer<T>& buffer) {
    const std::vector<T> host = buffer.to_host();
    append(host.data(), host.size() * sizeof(T));
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  void append(const void* data, std::size_t bytes);

  std::vector<std::byte> bytes_;
};

// Counts the bytes that follow the header.
class StateSize {
 public:
  void operator()(double) { bytes_ += sizeof(double); }
  template <typename T>
  void operator()(const DeviceBuffer<T>& buffer) {
    bytes_ += buffer.size() * sizeof(T);
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

class StateReader {
 public:
  // Throws Error{Exit::usage} with one line if `state` has another layout or size.
  StateReader(std::span<const std::byte> state, std::string_view head, std::size_t bytes);
  void operator()(double& number) { take(&number, sizeof number); }
  void operator()(int& number) {
    double stored = 0;
    (*this)(stored);
    number = static_cast<int>(stored);
  }
  void operator()(bool& flag) {
    int stored = 0;
    (*this)(stored);
    flag = stored != 0;
  }
  template <typename T>
  void operator()(DeviceBuffer<T>& buffer) {
    std::vector<T> host(buffer.size());
    take(host.data(), host.size() * sizeof(T));
    buffer.assign(host);
  }

 private:
  void take(void* data, std::size_t bytes);

  std::span<const std::byte> rest_;
};

template <typename Optimizer>
std::vector<std::byte> saved(const Optimizer& optimizer, const StateLayout& layout) {
  StateWriter writer(head_of(layout));
  Optimizer::each_state(optimizer, writer);
  return writer.take();
}

// Loads a state; changes nothing if it throws.
template <typename Optimizer>
void restore(Optimizer& optimizer, const StateLayout& layout, std::span<const std::byte> state) {
  StateSize size;
  Optimizer::each_state(optimizer, size);
  StateReader reader(state, head_of(layout), size.bytes());
  Optimizer::each_state(optimizer, reader);
}

}  // namespace lambcast::cuda
