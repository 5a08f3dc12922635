// Questions of the command line, as texts by key, and their answers in its JSON. The Python package
// and the page for browsers call these functions, so their answers are the same.
//
// All functions throw Error (usage) with the name of the key if a question cannot be answered.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/scenario/what_if.h"

namespace lambcast {

using Texts = std::vector<std::string>;
using StopAsked = std::function<bool()>;  // true when the answer is no longer needed

// Answers `simulate`; `then` are the later phases of a run, as in `simulate --then`.
std::string simulate_answer(WhatIf texts, const Texts& then);

// Answers `advise`; lists and scans are those of `advise --list` and `--scan`. Without any, there
// is a single advice.
std::string advise_answer(const WhatIf& texts, const Texts& lists, const Texts& scans);

std::string plan_answer(WhatIf texts, const StopAsked& stopped);

// Answers `compare`; `names` are clusters, or results folders, which take no other argument.
std::string compare_answer(const Texts& names, const WhatIf& texts, const Texts& clusters,
                           const Texts& optimizers, const Texts& exchanges);

struct SolveWords {
  std::string key, wanted;
  std::optional<std::string> low{}, high{};
};
std::string solve_answer(const SolveWords& words, const WhatIf& texts);

std::string sensitivity_answer(const WhatIf& texts, double by_percent);

std::string collective_answer(WhatIf texts);

struct SweepWords {
  std::string
      file;  // a sweep file, or the name of a built-in study; empty if the texts define the sweep
  std::string out;
  bool resume = false;
  Texts lists{}, scans{};
};
// Runs a sweep, writes its folder, and returns the messages for the user.
Texts sweep_answer(const SweepWords& words, WhatIf texts, const StopAsked& stopped);

}  // namespace lambcast
