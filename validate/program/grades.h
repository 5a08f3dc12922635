// Errors and intervals of training runs by the grade of their evidence:
//
//   S   stacks (a program on a machine) left out completely, with the prior of the others
//   U   rows that set no parameter, of sources that were used while the model was made
//   R   rows that set a parameter
//
// A fourth grade, F, is for forecasts registered before the measurement
// (validate/replay/registered.h).
//
// The slope shows whether wide intervals belong to large errors. With e the error's logarithm and w
// the half width of its interval, over the rows of a grade,
//
//   slope = sum |e| w / sum w^2
//
// Normally distributed errors with correct 90 % intervals give sqrt(2 / pi) / 1.645 = 0.49. A
// smaller slope means that the intervals are too wide.
#pragma once

#include <string>
#include <vector>

#include "validate/program/left_out_stacks.h"
#include "validate/replay/source_replay.h"

namespace lambcast {

struct Grade {
  char letter = 'U';
  std::string meaning;
  ErrorScore score;
  double slope = 0;
};

// Returns the grade of times and rates; memory has no interval.
Grade grade_of(char letter, std::string meaning, const std::vector<SourceResult>& results);

// Returns S, U and R. The median of S is the median of the stacks' medians.
std::vector<Grade> grades_of(const SourceSummary& summary, const LeftOutStacks& left_out);

std::string grade_table(const std::vector<Grade>& grades);

}  // namespace lambcast
