// Summary of the results in a few sentences. It has the number of points that ran, the largest and
// smallest gain from compression, and the bandwidth above which it no longer pays.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "experiments/report/contest.h"
#include "experiments/report/point.h"
#include "experiments/report/tally.h"

namespace lambcast::report {

// The only bandwidth at which `optimizer` stops, or starts, to pay on a cluster.
struct BreakEven {
  std::string cluster, optimizer, baseline;
  double gpus = absent, nic_Gbps = absent;
  bool falling = true;  // pays below this bandwidth
  std::string within;   // its interval: " (4.2 to 25)"; empty if the rows have none
  std::string with;     // other swept keys: ", with global batch 65536"; may be empty
};

// The bandwidths of a scan at which `optimizer` pays.
struct Scan {
  std::string cluster, optimizer;
  double gpus = absent;
  std::string pays;  // "below 10 Gbit/s (4.2 to 25)", "at every bandwidth scanned (...)"
};

// Summary of the results. Its counts are of all rows; the other members use the kept rows, and
// point into them.
struct Summary : Counts {
  std::size_t kept = 0;  // number of points kept
  std::string thinning;  // rows kept: "one in 4 values of steps"; empty: all
  std::vector<std::string> best_apart, worst_apart;  // distinguishing values: "precision fp16"
  std::vector<std::string> break_even;               // one sentence per optimizer with a scan
  std::vector<BreakEven> crossings;                  // for scans that cross 1 once
  std::vector<Scan> scans;                           // all scans
  Contest contest;                                   // contest among the exchanges
  // steps over GPUs that are not monotone (experiments/verdict/turns.h); may be empty
  std::string turns;
};

// Returns the summary. `kept` are all rows that were counted, or the part that `thinning`
// describes.
Summary summary_of(Counts counts, const std::vector<Point>& kept, const std::string& thinning);
Summary summary_of(const std::vector<Point>& points);

// Returns whether any row compares a compressed optimizer with its plain one.
bool compares(const Summary& summary);

// Returns the sentences of a screen: verdict, best point and first break-even. They are among
// those of in_words().
std::vector<std::string> in_brief(const Summary& summary);
// Returns sentences that form one paragraph.
std::vector<std::string> in_words(const Summary& summary);

}  // namespace lambcast::report
