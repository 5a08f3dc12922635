// Compares exchanges. Candidates are the optimizers that compress, and the exchanges that a plain
// optimizer runs in place of its all-reduce ("adam with fp8", point.h). They are compared within a
// place: rows equal in all keys except the optimizer, its exchange and what depends on them
// (backend, freeze_step).
#pragma once

#include <string>
#include <vector>

#include "experiments/report/point.h"

namespace lambcast::report {

struct Win {
  std::string candidate;
  std::size_t places = 0;
  const Point* best = nullptr;  // its fastest row among the places that it wins
};

struct Meeting {
  const Point* winner = nullptr;
  const Point* next = nullptr;  // fastest row of the other candidates
};

// Result of the comparison. Points into the points that were compared.
struct Contest {
  std::size_t places = 0, candidates = 0;
  std::size_t plain = 0;  // places in which no candidate is faster than the plain run
  std::vector<Win> wins;  // most places first
  // for each cluster, the place with the most candidates, then the most GPUs
  std::vector<Meeting> clusters;
  bool held() const { return places > 0; }
};

// Compares the candidates. The result has no places if no place has two candidates, or if none of
// them is an exchange.
Contest contest_of(const std::vector<Point>& points);

// Returns the sentence on the winner, "Adam with fp8 is the fastest of ...", and the further
// details.
std::string headline_of(const Contest& contest);
std::string detail_of(const Contest& contest);

}  // namespace lambcast::report
