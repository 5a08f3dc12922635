#include "validate/program/grades.h"

#include <fmt/format.h>

#include <cmath>

namespace lambcast {

Grade grade_of(char letter, std::string meaning, const std::vector<SourceResult>& results) {
  Grade grade{letter, std::move(meaning), score_of(results), 0};
  double products = 0, squares = 0;
  for (const SourceResult& result : results) {
    if (!result.ok() || !result.low) continue;
    const double half_width = half_width_of(result);
    products += std::abs(std::log(result.forecast / result.of.measured)) * half_width;
    squares += half_width * half_width;
  }
  if (squares > 0) grade.slope = products / squares;
  return grade;
}

std::vector<Grade> grades_of(const SourceSummary& summary, const LeftOutStacks& left_out) {
  std::vector<SourceResult> unseen, fitted;
  for (const SourceResult& result : summary.results)
    if (result.of.quantity != Quantity::memory_gib)
      (result.of.fitted ? fitted : unseen).push_back(result);
  Grade whole = grade_of('S', "programs on machines, each left out whole", results_of(left_out));
  whole.score.median = left_out.of_medians;
  return {std::move(whole), grade_of('U', "rows that set no parameter, of sources in view", unseen),
          grade_of('R', "rows that set a parameter", fitted)};
}

std::string grade_table(const std::vector<Grade>& grades) {
  std::string out =
      fmt::format("{:<52} {:>4} {:>6} {:>6} {:>6} {:>5}\n", "training, by grade of the evidence",
                  "rows", "med.", "p90", "inside", "slope");
  for (const Grade& grade : grades)
    out += fmt::format("{}  {:<49} {:>4} {:>5.1f}% {:>5.1f}% {:>5.0f}% {:>5.2f}\n", grade.letter,
                       grade.meaning, grade.score.rows, 100 * grade.score.median,
                       100 * grade.score.p90,
                       100.0 * grade.score.inside / grade.score.with_interval, grade.slope);
  return out +
         "med. of S: the median of the stacks' medians. inside: of intervals that claim 90 %. "
         "slope: of |error| on the half width, in logarithms; 0.49 if intervals are right, less if "
         "they are too wide.\n";
}

}  // namespace lambcast
