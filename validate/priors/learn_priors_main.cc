// learn_priors VALIDATE: writes the new content of topologies/priors.toml to standard output. After
// a change of the model or of the tables:
//
//   build/validate/priors/learn_priors validate > priors.toml
//   mv priors.toml topologies/ && cmake --build build && validate/calibrate/refit build
#include <fmt/format.h>

#include <cstdio>

#include "sim/base/error.h"
#include "validate/priors/learn_priors.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    fmt::print(stderr, "learn_priors VALIDATE: the folder of that name\n");
    return static_cast<int>(lambcast::Exit::usage);
  }
  try {
    using namespace lambcast::validate;
    const auto fabrics = fabrics_to_learn_from(argv[1]);
    fmt::print("{}", priors_text(learn_priors(fabrics), fabrics));
  } catch (const lambcast::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return static_cast<int>(lambcast::Exit::usage);
  }
}
