// The driver's management library (NVML) reports data that the CUDA API lacks: the driver's
// release, and the current clocks of a GPU, which may be well below its highest.
//
// It comes with the driver and is loaded at its first use. nvml.cc declares the few functions as
// NVIDIA documents them, because nvml.h is not part of every toolkit installation. Source: NVML API
// reference guide, sections initialization, system queries, device queries.
#pragma once

#include <optional>
#include <string>

namespace lambcast::cuda {

struct Clocks {
  int multiprocessors_mhz = 0, memory_mhz = 0;
};

struct Nvml {
  std::string driver;    // "580.82.07"
  void* gpu = nullptr;   // nvmlDevice_t
  void* read = nullptr;  // nvmlDeviceGetClockInfo

  // Returns the current clocks; nothing if the GPU does not report them.
  std::optional<Clocks> clocks() const;
};

// Loads NVML for the GPU at a PCI address ("0000:1b:00.0"). Returns nothing if the library is
// missing or does not list the GPU.
std::optional<Nvml> load_nvml(const std::string& pci_address,
                              const char* library = "libnvidia-ml.so.1");

}  // namespace lambcast::cuda
