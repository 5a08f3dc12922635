// Computes the rows of a sweep. Threads, and other ranks if there are any, take chunks of points in
// order. The caller gets the rows in order; at most a few thousand wait in memory.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "experiments/sweep/sweep_threads.h"

namespace lambcast {

class SweepRanks;

class SweepExecutor {
 public:
  // Computes the rows of points from number `first` on. Without other ranks and without a thread (0
  // jobs, or a system that starts none), next() computes them. `ranks` is null without other ranks.
  SweepExecutor(const SweepPoints& points, std::size_t first, int jobs,
                std::shared_ptr<DescriptionTexts> texts, RowOf row_of, SweepRanks* ranks = nullptr);
  // Waits for the points in progress, except those abandoned by leave().
  ~SweepExecutor();
  SweepExecutor(const SweepExecutor&) = delete;
  SweepExecutor& operator=(const SweepExecutor&) = delete;

  // Returns the next rows once a chunk of them is ready. After `patience` it returns the rows that
  // are ready, possibly none. Throws the exception of a point, or the failure of a rank, after the
  // last row before it.
  std::vector<SweepRow> next(std::chrono::milliseconds patience);

  // Waits a quarter of a second for the points in progress, then abandons them
  // (SweepThreads::leave).
  void leave();

 private:
  struct Window;
  bool exchange();

  std::shared_ptr<Window> window_;  // shared with abandoned threads
  SweepRanks* ranks_;
  SweepThreads threads_;
};

}  // namespace lambcast
