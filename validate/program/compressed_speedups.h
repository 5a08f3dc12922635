// Speed-ups of runs that send fewer bits, over the plain run of the same source. Neither run was
// used to set a number of the model (unseen_stacks.h). With both runs at the same batch
//
//   speed-up = time of the plain run / time of the run that sends fewer bits
//
// Errors that both runs share cancel, so a speed-up says more about the exchange than either step.
//
// Those of 1-bit Adam in DeepSpeed's blog are in view: some of their rows set parameters (grade R).
// They are listed one by one, so that the trend with the number of GPUs shows.
//
// Left out: rows whose programs state no plain run on the same machine, and gains that a paper
// states without the job ("up to 2.8x").
#pragma once

#include <string>
#include <vector>

#include "validate/replay/replay.h"

namespace lambcast {

struct CompressedSpeedup {
  std::string program, run;
  double measured = 1, forecast = 1;

  bool has_right_sign() const { return (measured > 1) == (forecast > 1); }
};

// Returns the speed-ups in the order of the rows.
std::vector<CompressedSpeedup> compressed_speedups();

// Formats the medians by program, and for all.
std::string speedup_table(const std::vector<CompressedSpeedup>& speedups);

// The pairs "1-bit Adam" and "Adam" of the same network and GPUs among published cases; `program`
// is R or U, the grade: U if neither set a parameter.
std::vector<CompressedSpeedup> speedups_in_view(const std::vector<ReplayResult>& results);

// A line for each, in their order.
std::string each_speedup_table(const std::vector<CompressedSpeedup>& speedups);

}  // namespace lambcast
