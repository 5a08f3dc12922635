#include "validate/program/unseen_stacks.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <set>
#include <string>

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

// A level of a family is worth learning from three programs of it on: each is then forecast by the
// mean of two others. TensorFlow has two (levels 1.08 and 1.15), which lie on one side of 1 every
// second time by chance.
TEST_CASE("unseen stacks: no family has three programs from which a level could be learned") {
  std::map<std::string, std::set<std::string>> families;
  for (const StackLevel& stack : all_levels()) families[stack.framework].insert(stack.program);
  CHECK(families.size() >= 5);
  for (const auto& [framework, programs] : families) {
    INFO(framework);
    CHECK(programs.size() < 3);
  }
}

}  // namespace
}  // namespace lambcast
