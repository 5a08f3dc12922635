#include "validate/program/after_one_step.h"

#include <catch2/catch.hpp>

namespace lambcast {
namespace {

TEST_CASE("after one step: the other runs are forecast better, in intervals that hold") {
  const std::vector<AfterOneStep> stacks = after_one_step(unseen_stacks());
  const std::vector<AfterOneStep> after_three = after_one_step(unseen_stacks(), 3);
  INFO(one_step_table(stacks, after_three));
  const OneStepScore score = score_of(stacks);
  CHECK(stacks.size() >= 15);
  CHECK(score.after.rows == 99);
  CHECK(score.after.median < 0.65 * score.before.median);
  CHECK(score.after.median < 0.045);
  CHECK(score.after.p90 < 0.14);
  const double inside = static_cast<double>(score.after.inside) / score.after.with_interval;
  CHECK(inside >= 0.85);
  CHECK(inside <= 0.97);
  CHECK(score.width_after < 1.25);
  CHECK(score.width_after < score.width_before);
  const OneStepScore of_three = score_of(after_three);
  CHECK(of_three.after.median <= score.after.median);
  CHECK(of_three.after.p90 < score.after.p90);
  const double inside_three =
      static_cast<double>(of_three.after.inside) / of_three.after.with_interval;
  CHECK(inside_three >= 0.85);
  CHECK(inside_three <= 0.97);
}

TEST_CASE(
    "after one step: runs that send fewer bits, wait for their network or use another framework "
    "are left out") {
  for (const AfterOneStep& stack : after_one_step(unseen_stacks())) {
    INFO(stack.program);
    CHECK(stack.before.size() == stack.after.size());
    for (const SourceResult& result : stack.before) CHECK(mostly_computes(result));
    for (const SourceResult& result : stack.after)
      CHECK(result.of.what_if.at("framework") == result.of.what_if.at("cluster.program.framework"));
  }
}

}  // namespace
}  // namespace lambcast
