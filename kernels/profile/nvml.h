// What the driver's management library (NVML) knows beyond the CUDA API: the driver's release, and
// the clocks a GPU runs at now, which may be well below the highest it could.
//
// It comes with the driver and is loaded when asked for. The few functions used are declared in
// nvml.cc as NVIDIA documents them, for nvml.h is not part of every toolkit installation.
// Source: NVML API reference guide, sections initialization, system queries, device queries.
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

  // Now; nothing where the GPU does not say.
  std::optional<Clocks> clocks() const;
};

// Of the GPU at that PCI address ("0000:1b:00.0"); nothing without the library or the GPU in it.
std::optional<Nvml> load_nvml(const std::string& pci_address,
                              const char* library = "libnvidia-ml.so.1");

}  // namespace lambcast::cuda
