// Turning points of a curve: a rise that becomes a fall, or a fall that becomes a rise.
// Communication libraries choose algorithms by size and by the number of ranks, so more GPUs may
// suddenly communicate in half the time. A turn between the forecast values may be missed.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace lambcast {

// Returns the indices of the extremes at which the curve turns by at least half a percent of its
// range and one percent of its largest value.
std::vector<std::size_t> turns_of(std::span<const double> values);

// The mean steps of runs on increasing numbers of GPUs.
struct StepsOverGpus {
  std::string of;  // describes what the runs share; may be empty
  std::vector<double> gpus, step_s;

  void sort();  // by GPUs
};

// Returns "A step is not monotone in GPUs: 845.1 ms at 456, 431.9 ms at 512. ..."; empty if all
// curves are monotone.
std::string turns_text(std::span<const StepsOverGpus> curves);

}  // namespace lambcast
