// Whether there is a GPU, and its properties.
#pragma once

#include <string>

namespace lambcast::cuda {

// Returns why fewer than `wanted` GPUs can be used; empty if they can.
std::string gpus_missing(int wanted);

struct GpuDescription {
  std::string name;
  std::string pci_address;  // "0000:1b:00.0"
  std::string driver;       // highest CUDA version the driver supports, "13.0"
  std::string runtime;      // CUDA version of the runtime linked, "13.0"
  std::size_t memory_bytes = 0;
  std::size_t l2_bytes = 0;
  double compute_capability = 0;  // for example 9.0 for Hopper
  int multiprocessors = 0;
  int clock_mhz = 0;         // highest clock of the multiprocessors
  int memory_clock_mhz = 0;  // highest clock of the memory
  int memory_bus_bits = 0;
};
// Describes the current device. Throws Error{Exit::failure} if a query fails.
GpuDescription describe_gpu();

}  // namespace lambcast::cuda
