// Who computes the rows of a sweep: threads, and other ranks where there are some, take chunks of
// points in order, the caller gets the rows in order, and no more than a few thousand wait in
// memory.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "experiments/sweep/sweep_threads.h"

namespace lambcast {

class SweepRanks;

class SweepExecutor {
 public:
  // The rows of points from number `first` on. A process that is alone and has no thread (0 jobs,
  // or a system that starts none) computes them in next(). `ranks` are null where this process is
  // alone.
  SweepExecutor(const SweepPoints& points, std::size_t first, int jobs,
                std::shared_ptr<DescriptionTexts> texts, RowOf row_of, SweepRanks* ranks = nullptr);
  // Waits for the points that are being computed, but for those of leave().
  ~SweepExecutor();
  SweepExecutor(const SweepExecutor&) = delete;
  SweepExecutor& operator=(const SweepExecutor&) = delete;

  // The next rows, once there is a chunk of them; after `patience` those that there are, or none.
  // Throws what a point threw, or what became of a rank, behind the last row that is there.
  std::vector<SweepRow> next(std::chrono::milliseconds patience);

  // Gives the points that are being computed a quarter of a second (SweepThreads::leave).
  void leave();

 private:
  struct Window;
  bool exchange();

  std::shared_ptr<Window> window_;  // shared with threads that were left behind
  SweepRanks* ranks_;
  SweepThreads threads_;
};

}  // namespace lambcast
