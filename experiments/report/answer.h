// The first screen of a report's page: the verdict in a sentence, three numbers, one picture, and
// what they rest on. It is plain HTML: nothing in it waits for a script.
#pragma once

#include <string>
#include <vector>

#include "experiments/report/results.h"
#include "experiments/report/summary.h"

namespace lambcast::report {

struct KeyNumber {
  std::string value, label;  // "2.34x", "best: 1-bit Adam over Adam on ..."
};

// From the least to the most of some rows; the picture is a bar each on one logarithmic scale.
struct Range {
  std::string label;
  double least = absent, median = absent, most = absent;
};

struct Answer {
  std::string headline;
  std::string detail;  // what to measure first, and what other kernels make of it
  std::vector<KeyNumber> numbers;
  std::string picture;  // what the ranges are of
  std::vector<Range> ranges;
  double level = absent;  // a line to compare them with, such as a speed-up of 1
  std::string rests_on;
};

// More ranges are left out, and the picture says so.
inline constexpr std::size_t most_ranges = 16;

Answer answer_of(const Results& results, const Summary& summary);

std::string answer_html(const Answer& answer);

}  // namespace lambcast::report
