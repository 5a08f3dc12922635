// What the results say in a few sentences: how many points ran, where compression gains most and
// least, and from which bandwidth on it stops to pay.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "experiments/equal_work.h"
#include "experiments/report/contest.h"
#include "experiments/report/point.h"
#include "experiments/verdict.h"

namespace lambcast::report {

// Points that cannot run, by reason. Reasons that differ in their numbers alone count as one.
struct Reason {
  std::string example;
  std::size_t count = 0;
};

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
  std::string within;   // " (4.2 to 25)" by the speed-up's interval; empty where rows have none
  std::string with;  // ", with global batch 65536": of what was swept too; empty where nothing was
};

// At which bandwidths `optimizer` pays in a scan.
struct Scan {
  std::string cluster, optimizer;
  double gpus = absent;
  std::string pays;  // "below 10 Gbit/s (4.2 to 25)", "at every bandwidth scanned (...)"
};

// Points into the points that it was made of.
struct Summary {
  std::size_t points = 0, ran = 0;
  std::vector<Reason> reasons;  // the most frequent first
  // Of the rows that compress, but for those with a share of warm-up that nobody runs with
  // (experiments/verdict.h), which are counted apart; the published run warms up for 17 %
  // (published_freeze_share in slice.h).
  VerdictCounts verdicts, fused;
  std::size_t no_warmup = 0, long_warmup = 0;
  EqualWork work;                               // of the rows that ran
  std::map<std::string, std::size_t> findings;  // rows of each code
  const Point* best = nullptr;
  const Point* worst = nullptr;
  std::vector<std::string> best_apart, worst_apart;  // what tells them apart, as "precision fp16"
  std::vector<Spread> spreads;
  std::vector<std::string> break_even;  // one sentence per optimizer with a scan
  std::vector<BreakEven> crossings;     // of scans that cross 1 once
  std::vector<Scan> scans;              // all of them
  Contest contest;                      // among exchanges
  std::string turns;                    // of steps over GPUs (experiments/turns.h); may be empty
};

Summary summary_of(const std::vector<Point>& points);

// Of a row that compresses.
Speedup speedup_of(const Point& point);

// Whether any row compares a compressed optimizer with its plain one.
bool compares(const Summary& summary);

// Sentences that together make one paragraph.
std::vector<std::string> in_words(const Summary& summary);

}  // namespace lambcast::report
