#include "kernels/profile/nvml.h"

#include <dlfcn.h>

namespace lambcast::cuda {
namespace {

constexpr int success = 0;                                   // NVML_SUCCESS
constexpr int multiprocessor_clock = 1, memory_clock = 2;    // NVML_CLOCK_SM, NVML_CLOCK_MEM
using Init = int();                                          // nvmlInit_v2
using DriverVersion = int(char* text, unsigned length);      // nvmlSystemGetDriverVersion
using FindGpu = int(const char* pci_address, void** gpu);    // nvmlDeviceGetHandleByPciBusId_v2
using ClockInfo = int(void* gpu, int which, unsigned* mhz);  // nvmlDeviceGetClockInfo

}  // namespace

std::optional<Clocks> Nvml::clocks() const {
  auto* const clock_info = reinterpret_cast<ClockInfo*>(read);
  unsigned multiprocessors = 0, memory = 0;
  if (clock_info(gpu, multiprocessor_clock, &multiprocessors) != success ||
      clock_info(gpu, memory_clock, &memory) != success)
    return std::nullopt;
  return Clocks{static_cast<int>(multiprocessors), static_cast<int>(memory)};
}

std::optional<Nvml> load_nvml(const std::string& pci_address, const char* library) {
  // Stays open until the program ends.
  void* const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return std::nullopt;
  const auto symbol = [handle](const char* name) { return dlsym(handle, name); };
  auto* const init = reinterpret_cast<Init*>(symbol("nvmlInit_v2"));
  auto* const version = reinterpret_cast<DriverVersion*>(symbol("nvmlSystemGetDriverVersion"));
  auto* const find = reinterpret_cast<FindGpu*>(symbol("nvmlDeviceGetHandleByPciBusId_v2"));
  Nvml nvml;
  nvml.read = symbol("nvmlDeviceGetClockInfo");
  if (init == nullptr || version == nullptr || find == nullptr || nvml.read == nullptr)
    return std::nullopt;
  char text[80] = "";  // NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE
  if (init() != success || version(text, sizeof text) != success ||
      find(pci_address.c_str(), &nvml.gpu) != success)
    return std::nullopt;
  nvml.driver = text;
  return nvml;
}

}  // namespace lambcast::cuda
