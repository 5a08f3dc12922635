// The device profile as a document: measured values, and their TOML text.
//
//   [device]      every value is { value = "4.1 TB/s", kind = "measured", source = ... }:
//                 name, memory_bandwidth (best read), copy_bandwidth (read + write),
//                 memory_capacity, launch_overhead, peak_half (with cuBLASLt), pageable_d2h,
//                 pageable_h2d, pinned_d2h, pinned_h2d; plain numbers compute_capability,
//                 multiprocessors, clock_mhz (the highest)
//   [[kernel]]    name, bytes_per_element, elements, time_us (medians), spread_us
//                 (interquartile ranges), copy_share (of the copy bandwidth)
//   [[product]]   format, m, n, k, time_us (medians), spread_us: one for each format
//   [[layer]]     hidden, heads, ffn, seq_len, micro_batch, forward_us, backward_us
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "sim/base/units.h"

namespace lambcast {

struct KernelTimes {
  std::string name;
  double bytes_per_element = 0;
  std::vector<std::size_t> elements;
  std::vector<double> time_us;
  std::vector<double> spread_us;
};

struct LayerTimes {
  int hidden = 0, heads = 0, ffn = 0, seq_len = 0;
  std::vector<int> micro_batch;
  std::vector<double> forward_us;
  std::vector<double> backward_us;
};

// Matrix products of one format, in order.
struct ProductTimes {
  std::string format;  // "fp16", "bf16", "tf32", "fp32", "fp8"
  std::vector<std::size_t> m, n, k;
  std::vector<double> time_us, spread_us;
};

struct DeviceProfileDocument {
  std::string name;
  std::string source;  // "lambcast profile, 2026-11-21, driver 580.82.07, ..."
  Bandwidth memory_bandwidth, copy_bandwidth;
  Bytes memory_capacity;
  Duration launch_overhead;
  FlopRate peak_half;  // rate of one large fp16 product; 0: not measured and not written
  Bandwidth pageable_d2h, pageable_h2d, pinned_d2h, pinned_h2d;
  std::vector<KernelTimes> kernels;
  double compute_capability = 0;  // 0: unknown, and then the next two are not written either
  int multiprocessors = 0, clock_mhz = 0;
  std::vector<ProductTimes> products;
  std::vector<LayerTimes> layers;
  std::vector<std::string> notes;  // what was omitted and why; comments in the file
};

std::string to_toml(const DeviceProfileDocument& document);

// Returns the bytes moved per second divided by the copy bandwidth.
double copy_share(const KernelTimes& kernel, std::size_t row, Bandwidth copy_bandwidth);

}  // namespace lambcast
