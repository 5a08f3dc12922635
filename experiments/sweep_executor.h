// Who computes the rows of a sweep: threads take chunks of points in order, the caller gets the
// rows in order, and no more than a few thousand wait in memory.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "experiments/catalog.h"
#include "experiments/sweep_points.h"
#include "models/finding.h"
#include "models/training/collective_costs.h"

namespace lambcast {

struct SweepRow {
  std::string text;  // one line, without its end
  bool ok = false;   // its status
  std::vector<Finding> warnings = {};
};

using RowOf = std::function<SweepRow(const WhatIf&, Catalog&, CollectiveCosts&)>;

class SweepExecutor {
 public:
  // The rows of points from number `first` on.
  SweepExecutor(SweepPoints points, std::size_t first, int jobs,
                std::shared_ptr<DescriptionTexts> texts, RowOf row_of);
  // Waits for the points that are being computed, but for those of leave().
  ~SweepExecutor();
  SweepExecutor(const SweepExecutor&) = delete;
  SweepExecutor& operator=(const SweepExecutor&) = delete;

  // The next rows, once there is a chunk of them; after `patience` those that there are, or none.
  // Throws what the point threw.
  std::vector<SweepRow> next(std::chrono::milliseconds patience);

  // Gives the points that are being computed a quarter of a second; a thread that takes longer is
  // left behind and ends with the process, since one point can take minutes.
  void leave();

 private:
  struct State;
  std::shared_ptr<State> state_;  // shared with threads that were left behind
};

}  // namespace lambcast
