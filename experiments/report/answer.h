// The first screen of a report's page: the verdict in a sentence, three numbers, one picture, and
// their sources. It is plain HTML and works without a script.
#pragma once

#include <string>
#include <vector>

#include "experiments/report/results.h"
#include "experiments/report/summary.h"

namespace lambcast::report {

struct KeyNumber {
  std::string value, label;  // "2.34x", "best: 1-bit Adam over Adam on ..."
};

// A range of values from the least to the most. The picture shows each range as a bar on a common
// logarithmic scale.
struct Range {
  std::string label;
  double least = absent, median = absent, most = absent;
};

struct Answer {
  std::string headline;
  std::string detail;  // what to measure first, and the effect of other kernels
  std::vector<KeyNumber> numbers;
  std::string picture;  // title of the picture
  std::vector<Range> ranges;
  double level = absent;  // reference line, such as a speed-up of 1
  std::string rests_on;
};

// Limit of the ranges drawn; if there are more, the picture states it.
inline constexpr std::size_t most_ranges = 16;

Answer answer_of(const Results& results, const Summary& summary);

std::string answer_html(const Answer& answer);

}  // namespace lambcast::report
