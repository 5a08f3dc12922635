#include "validate/program/after_one_step.h"

#include <catch2/catch.hpp>

namespace lambcast {
namespace {

TEST_CASE("after one step: the other runs are forecast better, in intervals that hold") {
  const std::vector<AfterOneStep> stacks = after_one_step(unseen_stacks());
  INFO(one_step_table(stacks));
  const OneStepScore score = score_of(stacks);
  CHECK(stacks.size() >= 15);
  CHECK(score.after.rows >= 100);
  CHECK(score.after.median < 0.65 * score.before.median);
  CHECK(score.after.median < 0.05);
  const double inside = static_cast<double>(score.after.inside) / score.after.with_interval;
  CHECK(inside >= 0.85);
  CHECK(inside <= 0.97);
  CHECK(score.width_after < 1.25);
  CHECK(score.width_after < score.width_before);
}

TEST_CASE("after one step: a run that sends fewer bits or waits for its network is left out") {
  for (const AfterOneStep& stack : after_one_step(unseen_stacks())) {
    INFO(stack.program);
    CHECK(stack.before.size() == stack.after.size());
    for (const SourceResult& result : stack.before) CHECK(mostly_computes(result));
  }
}

}  // namespace
}  // namespace lambcast
