#include "validate/program/grades.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

SourceResult result_of(double measured, double forecast, double half_width) {
  SourceResult result;
  result.of.measured = measured;
  result.status = "ok";
  result.forecast = forecast;
  result.error = forecast / measured - 1;
  result.low = forecast / half_width;
  result.high = forecast * half_width;
  return result;
}

// Half widths are ln 2 and ln 4, and errors are half of each, so the slope is 0.5.
TEST_CASE("grades: the slope is that of errors on half widths") {
  const std::vector<SourceResult> results{result_of(1, std::sqrt(2.0), 2), result_of(1, 0.5, 4)};
  const Grade grade = grade_of('U', "rows", results);
  CHECK(grade.slope == Approx(0.5));
  CHECK(grade.score.rows == 2);
  CHECK(grade.score.inside == 2);
  CHECK(grade_of('U', "rows", {result_of(1, 4, 2)}).slope == Approx(2));
}

TEST_CASE("grades: every row of the sources is U or R, and every row of a left-out stack is S") {
  const SourceSummary summary = replay_sources();
  const LeftOutStacks left_out = leave_out_stacks();
  const std::vector<Grade> grades = grades_of(summary, left_out);
  REQUIRE(grades.size() == 3);
  CHECK(grades[0].score.rows == left_out.rows);
  CHECK(grades[0].score.median == left_out.of_medians);
  CHECK(grades[1].score.with_interval + grades[2].score.with_interval == summary.all.with_interval);
  // The table begins with the largest errors, those of left-out stacks.
  CHECK(grades[0].score.median > grades[1].score.median);
  CHECK(grades[1].score.median > grades[2].score.median);
  CHECK_THAT(grade_table(grades), Contains("S  programs on machines, each left out whole"));
}

}  // namespace
}  // namespace lambcast
