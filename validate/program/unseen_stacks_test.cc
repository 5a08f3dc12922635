#include "validate/program/unseen_stacks.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <map>

namespace lambcast {
namespace {

const std::vector<StackLevel>& all_levels() {
  static const std::vector<StackLevel> levels = levels_of(unseen_stacks());
  return levels;
}

TEST_CASE("unseen stacks: the shipped prior is what they give") {
  const ProgramPrior learned = learn_prior(all_levels());
  CHECK(learned.spread == Approx(shipped_program_prior().spread).margin(0.002));
  CHECK(learned.programs == shipped_program_prior().programs);
  CHECK(learned.stacks == shipped_program_prior().stacks);
}

// Two stacks of one program with x^2 - v of 0.04 and 0.08, one of another with 0.02:
// S^2 = (0.06 + 0.02) / 2 = 0.04.
TEST_CASE("unseen stacks: each program weighs alike in the prior") {
  const ProgramPrior prior = learn_prior({{"a", "one", "", std::sqrt(0.05), 0.01},
                                          {"a", "two", "", -std::sqrt(0.09), 0.01},
                                          {"b", "one", "", std::sqrt(0.03), 0.01}});
  CHECK(prior.spread == Approx(0.2));
  CHECK(prior.programs == 2);
  CHECK(prior.stacks == 3);
}

TEST_CASE("unseen stacks: left out in turn, intervals of 90 % hold as many rows") {
  const LeftOutStacks left_out = leave_out_stacks();
  INFO(left_out_table(left_out));
  const double inside = static_cast<double>(left_out.inside) / left_out.rows;
  CHECK(left_out.stacks.size() == 29);
  CHECK(left_out.rows == 178);
  CHECK(inside >= 0.85);
  CHECK(inside <= 0.95);
  CHECK(left_out.of_levels < 1.1 * left_out.limit);
  CHECK(left_out.of_medians < 0.18);
}

// The root mean square of the levels that are left when each stack is forecast by 1, and by the
// mean of the other stacks of its framework, shrunk by its own uncertainty:
//
//   m = S^2 / (S^2 + (S^2 + v) / n) x mean of the n others
TEST_CASE("unseen stacks: the mean of a family does not forecast its next stack better") {
  std::map<std::string, std::vector<StackLevel>> families;
  for (const StackLevel& level : all_levels()) families[level.framework].push_back(level);
  const double spread = shipped_program_prior().spread, square = spread * spread;
  for (const auto& [framework, stacks] : families) {
    if (stacks.size() < 3) continue;
    double without = 0, with = 0, sum = 0;
    for (const StackLevel& stack : stacks) sum += stack.log;
    for (const StackLevel& stack : stacks) {
      const auto others = static_cast<double>(stacks.size() - 1);
      const double mean = (sum - stack.log) / others;
      const double shrunk = mean * square / (square + (square + stack.variance) / others);
      without += stack.log * stack.log;
      with += (stack.log - shrunk) * (stack.log - shrunk);
    }
    INFO(framework << ": " << std::sqrt(without / static_cast<double>(stacks.size())) << " by 1, "
                   << std::sqrt(with / static_cast<double>(stacks.size())) << " by its mean");
    CHECK(with > without);
  }
}

}  // namespace
}  // namespace lambcast
