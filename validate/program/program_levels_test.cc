#include "validate/program/program_levels.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <set>
#include <string>

namespace lambcast {
namespace {

TEST_CASE("program levels: the shipped prior is the one learned from them") {
  const ProgramPrior learned = learn_prior(shipped_levels());
  CHECK(learned.spread == Approx(shipped_program_prior().spread).margin(0.002));
  CHECK(learned.programs == shipped_program_prior().programs);
  CHECK(learned.stacks == shipped_program_prior().stacks);
}

// Two stacks of one program have x^2 - v of 0.04 and 0.08, one of another program 0.02, so S^2 =
// (0.06 + 0.02) / 2 = 0.04.
TEST_CASE("program levels: each program has equal weight in the prior") {
  const ProgramPrior prior = learn_prior({{"a", "one", "", std::sqrt(0.05), 0.01},
                                          {"a", "two", "", -std::sqrt(0.09), 0.01},
                                          {"b", "one", "", std::sqrt(0.03), 0.01}});
  CHECK(prior.spread == Approx(0.2));
  CHECK(prior.programs == 2);
  CHECK(prior.stacks == 3);
}

// DeepSpeed on the V100 of the 1-bit Adam paper: its preset has a scale of 1.16 or 1.23, and its
// rows are close to the forecast.
TEST_CASE("program levels: a stack whose figures set parameters has the level that they set") {
  std::map<std::string, StackLevel> by_source;
  for (const StackLevel& level : levels_in_view(replay_sources().results))
    by_source.emplace(level.program, level);
  CHECK(by_source.size() > 20);
  CHECK(by_source.at("onebit_adam_table1").log == Approx(std::log(1.16)).margin(0.06));
  CHECK(by_source.at("deepspeed_moe_train").log == Approx(std::log(2.04)).margin(0.06));
  for (const auto& [source, level] : by_source) CHECK(level.variance == 0);
}

// A level per family needs three programs, so that each is forecast by the mean of two others.
// TensorFlow has two (levels 1.08 and 1.15); two are on the same side of 1 by chance in half of all
// cases.
TEST_CASE("program levels: no family has three programs from which a level could be learned") {
  std::map<std::string, std::set<std::string>> families;
  for (const StackLevel& stack : levels_of(unseen_stacks()))
    families[stack.framework].insert(stack.program);
  CHECK(families.size() >= 5);
  for (const auto& [framework, programs] : families) {
    INFO(framework);
    CHECK(programs.size() < 3);
  }
}

}  // namespace
}  // namespace lambcast
