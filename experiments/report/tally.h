// Statistics of all rows of results.csv: counts, medians, the best rows. They are updated row by
// row, so that rows need not be kept.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "experiments/report/point.h"
#include "experiments/verdict/equal_work.h"
#include "experiments/verdict/verdict.h"

namespace lambcast::report {

// Points that cannot run, by reason. Reasons that differ only in numbers count as one.
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

// Samples per second of one optimizer on one cluster.
struct Rates {
  std::string optimizer, cluster;
  float least = 0, median = 0, most = 0;
};

// A copy of a row that is kept after the others are dropped.
using Kept = std::shared_ptr<const Point>;

struct Counts {
  std::size_t points = 0, ran = 0;
  std::vector<Reason> reasons;  // the most frequent first
  // Verdicts of the compressed rows. Rows with an unusual warm-up share
  // (experiments/verdict/verdict.h) are counted separately. The published run warms up for 17 %
  // (published_freeze_share in slice.h).
  VerdictCounts verdicts, fused;
  LeftOut left_out;
  Kept best, worst;  // by speed-up, among the rows that count for verdicts
  std::vector<Spread> spreads;
  // Common amount of work of the rows that ran.
  EqualWork work;
  std::map<std::string, std::size_t> findings, cost_sources;  // number of rows with each
  Kept most_samples, most_samples_per_gpu;                    // most samples per second
  Kept shortest;             // least time for equal work, among sound rows if there are any
  std::vector<Rates> rates;  // empty if a row is judged
};

class Tally {
 public:
  void add(const Point& point);

  // Returns the counts of all rows added; called once, at the end.
  Counts counts();

 private:
  // Rows of one optimizer on one cluster. A deque grows without copying.
  struct Group {
    Name cluster, optimizer;
    std::deque<double> speedups = {};  // speed-ups of rows that are judged
    std::deque<float> samples_per_s = {};
  };
  // Counts of rows by name. Consecutive rows mostly have the same name, which is then not looked up
  // again.
  struct RowsByName {
    std::unordered_map<Name, std::size_t> rows;
    std::pair<const Name, std::size_t>* last = nullptr;

    void add(Name name) {
      if (last == nullptr || last->first != name) last = &*rows.try_emplace(name).first;
      ++last->second;
    }
  };
  struct Compressed {
    Name optimizer, baseline;
  };
  struct Shortest {
    double time_s = 0;
    Kept point;
  };
  using ByUnit = std::array<Shortest, std::size(EqualWork::units)>;

  Group& group_of(const Point& point);
  void add_reason(const Point& point);
  void add_shortest(const Point& point, Kept& kept);
  void add_compared(const Point& point, Kept& kept);
  // Drops the counts of rows that freeze early, once a row that freezes later is found.
  void forget_early();
  void add_spreads();
  void add_rates();

  Counts counts_;
  bool any_usual_ = false;  // whether a compared row has a usual share of warm-up
  std::unordered_map<std::string, std::size_t> reason_of_masked_;  // indices among the reasons
  std::unordered_map<Name, std::size_t> reason_of_status_;
  RowsByName findings_, cost_sources_;
  std::vector<Compressed> compressed_;  // optimizers, in the order of the file
  std::deque<Group> groups_;            // in the order of the file
  std::unordered_map<Name, std::unordered_map<Name, Group*>> known_;  // by cluster and optimizer
  Group* last_ = nullptr;
  std::vector<Name> judged_clusters_, judged_optimizers_;  // in the order of the file
  ByUnit shortest_, shortest_sound_;
};

// Returns the speed-up of a compressed row.
Speedup speedup_of(const Point& point);

// Returns the share of the steps of a row that compress, from 0 to 1.
double compressed_share(const Point& point);

// Returns whether the row ran, on a backend that works, uncompressed or with a usual share of
// warm-up.
bool is_sound(const Point& point);

}  // namespace lambcast::report
