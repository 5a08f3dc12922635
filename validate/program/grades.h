// Errors and intervals of training runs by the grade of their evidence:
//
//   S   a program on a machine left out whole, with the prior of the others (left_out_stacks.h)
//   U   rows that set no parameter, of sources in view when the model was made
//   R   rows that set a parameter
//
// A fourth grade, F, is that of forecasts registered before anybody measured them
// (validate/replay/registered.h).
//
// The slope says whether wide intervals are those of large errors: with e the error's logarithm and
// w the half width of its interval, over the rows of a grade,
//
//   slope = sum |e| w / sum w^2
//
// An error of normal distribution whose interval of 90 % is right gives sqrt(2 / pi) / 1.645 =
// 0.49. Less: the intervals are wider than the errors need.
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

// Times and rates; memory has no interval.
Grade grade_of(char letter, std::string meaning, const std::vector<SourceResult>& results);

// S, U and R. The median of S is the median of the stacks' medians.
std::vector<Grade> grades_of(const SourceSummary& summary, const LeftOutStacks& left_out);

std::string grade_table(const std::vector<Grade>& grades);

}  // namespace lambcast
