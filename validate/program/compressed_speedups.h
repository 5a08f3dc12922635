// Speed-ups of runs that send fewer bits, over the baseline run of the same source. Neither run was
// used to set a number of the model (unseen_stacks.h). With both runs at the same batch
//
//   speed-up = time of the baseline run / time of the run that sends fewer bits
//
// Errors that both runs share cancel, so a speed-up tests the exchange better than either step
// does. The table counts the measured speed-ups inside the forecast's interval
// (models/training/run/error_source.h). Passes of two frameworks err independently.
//
// The speed-ups of 1-bit Adam in DeepSpeed's blog are separate, since some of their rows set
// parameters (grade R). They are listed one by one to show the trend with the number of GPUs.
//
// Left out: rows whose programs state no baseline run on the same machine, and gains that a paper
// states without the job ("up to 2.8x").
#pragma once

#include <string>
#include <vector>

#include "validate/replay/replay.h"

namespace lambcast {

struct CompressedSpeedup {
  std::string program, run;
  double measured = 1, forecast = 1;
  double low = 1, high = 1;  // interval of the forecast; unset by speedups_in_view()

  bool inside() const { return low <= measured && measured <= high; }
  bool has_right_sign() const { return (measured > 1) == (forecast > 1); }
};

// Returns the speed-ups in the order of the rows.
std::vector<CompressedSpeedup> compressed_speedups();

// Formats the medians by program, and for all.
std::string speedup_table(const std::vector<CompressedSpeedup>& speedups);

// Returns the speed-ups of the pairs "1-bit Adam" and "Adam" with the same network and GPUs among
// published cases. `program` holds the grade: U if neither row set a parameter, else R.
std::vector<CompressedSpeedup> speedups_in_view(const std::vector<ReplayResult>& results);

// Formats a line for each speed-up, in their order.
std::string each_speedup_table(const std::vector<CompressedSpeedup>& speedups);

}  // namespace lambcast
