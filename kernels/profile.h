// `lambcast profile`: measures this GPU and writes a device profile for the simulator.
//
// It times every kernel over a range of sizes and at the exact buffer of BERT-Large, the matrix
// products of transformer layers forward and backward, and the copies between device and host.
// Every single call is between device events, after warm-up calls, with the same state and a
// flushed L2 cache. The median and the interquartile range over the iterations are kept. Kernels
// are compared with the bandwidth of a plain device copy measured in the same run.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace lambcast {

struct ProfileOptions {
  // Options as in nccl-tests (-b -e -f -n -w): bytes of one fp32 buffer, 64 K to 1 G elements by
  // default.
  std::size_t min_bytes = std::size_t{256} << 10;
  std::size_t max_bytes = std::size_t{4} << 30;
  double factor = 4;
  int iterations = 20;
  int warmup = 5;
  bool layers = true;
  std::function<void(std::string_view)> progress;  // one line per measurement; may be empty
};

// Returns the profile as TOML text (in the form of profile/document.h). Sizes that do not fit the
// device's memory are left out and named in a comment. Throws Error{Exit::usage} for options out of
// range, Error{Exit::missing} if there is no GPU or this build has no CUDA, and
// Error{Exit::failure} if a CUDA call fails.
std::string profile_device(const ProfileOptions& options);

// Returns the element counts of `options` in increasing order, with BERT-Large's 335,184,706 if it
// is in the range. Throws Error{Exit::usage} for options out of range.
std::vector<std::size_t> profile_sizes(const ProfileOptions& options);

}  // namespace lambcast
