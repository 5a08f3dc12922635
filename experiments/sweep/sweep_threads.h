// Threads that compute points of a sweep. Each takes chunks of points from a queue and returns
// their rows, until there are no more.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "experiments/scenario/catalog.h"
#include "experiments/sweep/sweep_points.h"
#include "models/finding.h"
#include "models/training/price/collective_costs.h"

namespace lambcast {

struct SweepRow {
  std::string text;  // one line, without its end
  bool ok = false;   // whether its status is "ok"
  std::vector<Finding> findings = {};
};

using RowOf = std::function<SweepRow(const WhatIf&, Catalog&, CollectiveCosts&)>;

// Consecutive points from `begin` to before `end`.
struct SweepChunk {
  std::size_t begin = 0, end = 0;

  bool empty() const { return begin == end; }
};

class SweepQueue {
 public:
  virtual ~SweepQueue() = default;

  // Waits for points; returns an empty chunk if none are left.
  virtual SweepChunk take() = 0;
  // Returns false if no more rows are needed.
  virtual bool give(std::size_t point, SweepRow row, bool last_of_chunk) = 0;
  // Reports the exception that ended a thread.
  virtual void fail(std::exception_ptr thrown) = 0;
};

// Descriptions and costs that the points of one thread share.
struct SweepWorker {
  Catalog catalog;
  CollectiveCosts costs{};
};

class SweepThreads {
 public:
  SweepThreads(int jobs, SweepPoints points, std::shared_ptr<DescriptionTexts> texts, RowOf row_of,
               std::shared_ptr<SweepQueue> queue);
  // Waits for the threads, except those abandoned by leave(). The queue must have signalled its
  // end.
  ~SweepThreads();
  SweepThreads(const SweepThreads&) = delete;
  SweepThreads& operator=(const SweepThreads&) = delete;

  bool none() const { return threads_.empty(); }
  // Computes a chunk on the calling thread.
  void compute_chunk();

  // Waits a quarter of a second for the threads. A thread that takes longer is abandoned and ends
  // with the process, since one point can take minutes.
  void leave();

 private:
  struct Work;
  std::shared_ptr<Work> work_;  // shared with abandoned threads
  std::vector<std::thread> threads_;
  std::optional<SweepWorker> caller_;
};

}  // namespace lambcast
