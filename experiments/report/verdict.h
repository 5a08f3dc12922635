// What the results say in a few sentences: how many points ran, where compression gains most and
// least, and from which bandwidth on it stops to pay.
#pragma once

#include <string>
#include <vector>

#include "experiments/report/point.h"

namespace lambcast::report {

// Points that cannot run, by reason. Reasons that differ in their numbers alone count as one.
struct Reason {
  std::string example;
  std::size_t count = 0;
};

// A run that compresses from its first step on has no variance to freeze, and one that warms up for
// more than half of its steps is hardly a compressed one. Both stand in the figures over
// freeze_step but are no advice: counts, best, worst and spreads leave them out, and the verdict
// says how many. The published run warms up for 17 % (published_freeze_share in slice.h).
inline constexpr double longest_warmup_share = 0.5;

// Spread of the whole-run speed-up over the rows of one optimizer on one cluster.
struct Spread {
  std::string cluster, optimizer, baseline;
  std::size_t count = 0;
  double least = absent, median = absent, most = absent;
};

// The one bandwidth at which `optimizer` stops, or starts, to pay on a cluster.
struct BreakEven {
  std::string cluster, optimizer, baseline;
  double gpus = absent, nic_Gbps = absent;
  bool falling = true;  // pays below it
};

// Points into the points that it was made of.
struct Verdict {
  std::size_t points = 0, ran = 0;
  std::vector<Reason> reasons;  // the most frequent first
  // Rows with a baseline that are judged; of them, with a speed-up over 1; those that are not.
  std::size_t compared = 0, faster = 0, no_warmup = 0, long_warmup = 0;
  const Point* best = nullptr;
  const Point* worst = nullptr;
  std::vector<std::string> best_apart, worst_apart;  // what tells them apart, as "precision fp16"
  std::vector<Spread> spreads;
  std::vector<std::string> break_even;  // one sentence per optimizer with a scan
  std::vector<BreakEven> crossings;     // of scans that cross 1 once
};

Verdict verdict_of(const std::vector<Point>& points);

// Sentences that together make one paragraph.
std::vector<std::string> in_words(const Verdict& verdict);

}  // namespace lambcast::report
