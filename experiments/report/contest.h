// Which way of sending less wins? Candidates are the optimizers that compress and the exchanges
// that a plain one runs instead of its all-reduce ("adam with fp8", point.h). They meet in a place:
// rows alike in all but that, and in what belongs to it (backend, freeze_step).
#pragma once

#include <string>
#include <vector>

#include "experiments/report/point.h"

namespace lambcast::report {

struct Win {
  std::string candidate;
  std::size_t places = 0;
  const Point* best = nullptr;  // of the places that it wins
};

struct Meeting {
  const Point* winner = nullptr;
  const Point* next = nullptr;  // the fastest of the others
};

// Points into the points that it was made of.
struct Contest {
  std::size_t places = 0, candidates = 0;
  std::size_t plain = 0;          // places in which no candidate beats the plain run
  std::vector<Win> wins;          // the most places first
  std::vector<Meeting> clusters;  // of each, where most candidates meet on most GPUs
  bool held() const { return places > 0; }
};

// No places where no two candidates meet, or none of them is an exchange.
Contest contest_of(const std::vector<Point>& points);

// "Adam with fp8 wins: ..."; and what else there is to say.
std::string headline_of(const Contest& contest);
std::string detail_of(const Contest& contest);

}  // namespace lambcast::report
