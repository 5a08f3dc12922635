#include "kernels/profile.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <optional>

#include "kernels/cuda/gpu.h"
#include "kernels/cuda/host_copy.h"
#include "kernels/profile/document.h"
#include "kernels/profile/kernels.h"
#include "kernels/profile/layer.h"
#include "kernels/profile/load.h"
#include "kernels/profile/nvml.h"
#include "sim/base/check.h"

namespace lambcast {
namespace {

using namespace lambcast::cuda;

// Range of clocks while the device was working.
struct ClockRange {
  int lowest = 0, highest = 0;

  void add(int mhz) {
    lowest = highest == 0 ? mhz : std::min(lowest, mhz);
    highest = std::max(highest, mhz);
  }
  std::string text() const {
    return highest == 0 ? "" : fmt::format(" ({} to {} while measured)", lowest, highest);
  }
};

std::string source_of(const GpuDescription& gpu, const std::string& driver,
                      const ClockRange& multiprocessors, const ClockRange& memory) {
  std::string source =
      fmt::format("lambcast profile, {:%Y-%m-%d}, ", fmt::gmtime(std::time(nullptr)));
  if (!driver.empty()) source += fmt::format("driver {}, ", driver);
  source += fmt::format("CUDA {} of the driver, {} of the runtime, ", gpu.driver, gpu.runtime);
  if (const std::string blas = blas_version(); !blas.empty()) source += blas + ", ";
  return source + fmt::format("{} multiprocessors at up to {} MHz{}, memory at up to {} MHz{}",
                              gpu.multiprocessors, gpu.clock_mhz, multiprocessors.text(),
                              gpu.memory_clock_mhz, memory.text());
}

// Returns the largest bandwidth that a kernel reached over all sizes.
Bandwidth best(const std::vector<KernelTimes>& kernels, std::string_view name) {
  double most = 0;
  for (const KernelTimes& k : kernels) {
    if (k.name != name) continue;
    for (std::size_t row = 0; row < k.elements.size(); ++row) {
      const double bytes = k.bytes_per_element * static_cast<double>(k.elements[row]);
      most = std::max(most, bytes / (k.time_us[row] * 1e-6));
    }
  }
  LAMBCAST_CHECK(most > 0, "no kernel {} was timed", name);
  return Bandwidth(most);
}

// Times empty kernels one after another, many per measurement.
Duration launch_overhead(Timer& timer) {
  constexpr int launches = 1000;
  const Timing timing = timer.time("empty kernel", [](cudaStream_t stream) {
    for (int i = 0; i < launches; ++i) {
      if (const auto e = empty(stream)) return e;
    }
    return cudaSuccess;
  });
  return Duration::microseconds(timing.median_us / launches);
}

Bandwidth host_bandwidth(Timer& timer, HostMemory kind, cudaMemcpyKind direction) {
  constexpr std::size_t bytes = std::size_t{128} << 20;
  const HostBuffer host(bytes, kind);
  const DeviceBuffer<unsigned char> device(bytes);
  const bool down = direction == cudaMemcpyDeviceToHost;
  const Timing timing = timer.time("host copy", [&](cudaStream_t stream) {
    return cudaMemcpyAsync(down ? host.data() : device.data(), down ? device.data() : host.data(),
                           bytes, direction, stream);
  });
  return Bandwidth(static_cast<double>(bytes) / (timing.median_us * 1e-6));
}

// Returns the sizes that fit the free memory, and names the others.
std::vector<std::size_t> fitting(const std::vector<std::size_t>& sizes,
                                 std::vector<std::string>& notes) {
  std::size_t free = 0, total = 0;
  require(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  std::vector<std::size_t> kept;
  for (const std::size_t elements : sizes) {
    if (Workbench::bytes(elements) < free - free / 16) {
      kept.push_back(elements);
    } else {
      notes.push_back(fmt::format("{} elements do not fit the memory and were left out", elements));
    }
  }
  if (kept.empty())
    throw Error(Exit::failure, "no size fits the memory of this GPU; try: a smaller -b");
  return kept;
}

}  // namespace

std::string profile_device(const ProfileOptions& options) {
  const std::vector<std::size_t> sizes = profile_sizes(options);
  if (const std::string why = gpus_missing(1); !why.empty()) throw Error(Exit::missing, why);

  const GpuDescription gpu = describe_gpu();
  DeviceProfileDocument d;
  d.name = gpu.name;
  d.memory_capacity = Bytes(static_cast<double>(gpu.memory_bytes));
  d.compute_capability = gpu.compute_capability;
  d.multiprocessors = gpu.multiprocessors, d.clock_mhz = gpu.clock_mhz;
  Timer timer(options.iterations, options.warmup);
  const std::optional<Nvml> nvml = load_nvml(gpu.pci_address);
  ClockRange multiprocessors, memory;
  timer.meanwhile = [&] {
    if (const auto now = nvml ? nvml->clocks() : std::nullopt) {
      multiprocessors.add(now->multiprocessors_mhz);
      memory.add(now->memory_mhz);
    }
  };
  d.kernels = time_kernels(timer, fitting(sizes, d.notes), options.progress);
  d.copy_bandwidth = best(d.kernels, "copy");
  d.memory_bandwidth = best(d.kernels, "gradient_norm");
  d.launch_overhead = launch_overhead(timer);
  if (options.progress) options.progress("copies between host and device");
  d.pageable_d2h = host_bandwidth(timer, HostMemory::pageable, cudaMemcpyDeviceToHost);
  d.pageable_h2d = host_bandwidth(timer, HostMemory::pageable, cudaMemcpyHostToDevice);
  d.pinned_d2h = host_bandwidth(timer, HostMemory::pinned, cudaMemcpyDeviceToHost);
  d.pinned_h2d = host_bandwidth(timer, HostMemory::pinned, cudaMemcpyHostToDevice);
  d.peak_half = time_large_product(timer);
  if (const std::string_view why = products_missing(); !why.empty()) {
    d.notes.emplace_back(why);
  } else if (options.layers) {
    d.products = time_products_by_shape(timer, gpu.compute_capability, d.notes, options.progress);
    d.layers = time_layers(timer, options.progress);
    if (const auto left_out = profiled_layers().size() - d.layers.size(); left_out > 0)
      d.notes.push_back(fmt::format("{} layers do not fit the memory and were left out", left_out));
  }
  d.source = source_of(gpu, nvml ? nvml->driver : "", multiprocessors, memory);
  return to_toml(d);
}

}  // namespace lambcast
