// A sweep on several processes: rank 0 hands out chunks of points, receives their rows and writes
// them; the others compute. The other ranks read no file and print nothing. The sweep and the text
// of every description come from rank 0, so their hosts need only the program.
//
// The rows are byte for byte those of one process, in its order. This needs machines with the same
// kind of processor and the same C library. A rank that is silent for a minute is lost, and the
// sweep ends. The rows written so far stay, and the sweep can resume.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "experiments/sweep/ranks.h"
#include "experiments/sweep/sweep_plan.h"
#include "experiments/sweep/sweep_threads.h"

namespace lambcast {

constexpr std::chrono::milliseconds ranks_patience{60'000};

// The other ranks, as used by rank 0.
class SweepRanks {
 public:
  // Sends the sweep to the other ranks, and the number of threads for each.
  SweepRanks(Ranks& ranks, const SweepPlan& plan, const DescriptionTexts& texts, int jobs,
             std::chrono::milliseconds patience = ranks_patience);

  // Returns the number of threads of all other ranks together.
  int threads() const { return jobs_ * static_cast<int>(others_.size()); }

  // Receives messages and hands out chunks; returns true if there were any. `take` does not wait.
  // Throws Error (failure) if a rank is lost or cannot continue.
  bool exchange(const std::function<SweepChunk()>& take,
                const std::function<void(std::size_t, SweepRow)>& give);

 private:
  using Clock = std::chrono::steady_clock;
  struct Other {
    std::string host;
    int chunks = 0;  // chunks in progress on this rank
    Clock::duration silent{};
  };

  Other& other(int rank) { return others_[static_cast<std::size_t>(rank) - 1]; }
  std::string name_of(int rank);
  bool take_in(const std::function<void(std::size_t, SweepRow)>& give);
  bool hand_out(const std::function<SweepChunk()>& take);
  void watch();

  Ranks& ranks_;
  int jobs_;
  Clock::duration patience_;
  std::vector<Other> others_;
  Clock::time_point watched_ = Clock::now(), greeted_ = Clock::now();
};

// Runs a rank other than 0: computes until rank 0 ends the sweep. Returns the exit code. Threads in
// the middle of a point may be left behind, and end with the process.
int serve_sweep(Ranks& ranks, const RowOf& row_of);

// Ends the other ranks from rank 0: they exit with `code`, and MPI ends with them. Returns false if
// one did not answer within `patience`.
bool end_ranks(Ranks& ranks, int code, std::chrono::milliseconds patience);

}  // namespace lambcast
