// learn_program_prior: writes the new content of topologies/program_prior.toml to standard output.
// After a change of the model or of the unseen stacks:
//
//   build/validate/program/learn_program_prior > prior.toml &&
//     mv prior.toml topologies/program_prior.toml
//
// The argument "levels" also prints the level of each stack.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <string_view>

#include "sim/base/error.h"
#include "validate/program/program_levels.h"

int main(int argc, char** argv) {
  using namespace lambcast;
  try {
    const auto levels = shipped_levels();
    if (argc > 1 && std::string_view(argv[1]) == "levels")
      for (const StackLevel& level : levels)
        fmt::print("# {:<22} {:<34} {:<11} level {:.3f}, kernels {:.3f}\n", level.program,
                   level.machine, level.framework, std::exp(level.log), std::sqrt(level.variance));
    fmt::print("{}", prior_text(learn_prior(levels)));
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return static_cast<int>(Exit::usage);
  }
}
