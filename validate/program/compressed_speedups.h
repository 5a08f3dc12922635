// Speed-ups of runs that send fewer bits, against the plain run of the same source. Neither run set
// a number of the model (unseen_stacks.h). With both runs at the same batch
//
//   speed-up = time of the plain run / time of the run that sends fewer bits
//
// Errors that both runs share cancel, so a speed-up says more about the exchange than either step.
//
// Left out: rows whose programs state no plain run on the same machine.
#pragma once

#include <string>
#include <vector>

namespace lambcast {

struct CompressedSpeedup {
  std::string program, run;
  double measured = 1, forecast = 1;

  bool has_right_sign() const { return (measured > 1) == (forecast > 1); }
};

// In the order of the rows.
std::vector<CompressedSpeedup> compressed_speedups();

// Medians by program, and over all.
std::string speedup_table(const std::vector<CompressedSpeedup>& speedups);

}  // namespace lambcast
