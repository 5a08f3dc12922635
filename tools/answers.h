// Questions of the command line, given as texts by key, and their answers as its JSON. The Python
// package and the page for browsers call these functions, so their answers are the same.
//
// All throw Error (usage), naming the key, for a question that cannot be answered.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "experiments/scenario/what_if.h"

namespace lambcast {

using Texts = std::vector<std::string>;
using StopAsked = std::function<bool()>;  // true once the answer is no longer wanted

// `then` are the phases of a run after the first, as in `simulate --then`.
std::string simulate_answer(WhatIf texts, const Texts& then);

// Lists and scans are those of `advise --list` and `--scan`; without any there is one advice.
std::string advise_answer(const WhatIf& texts, const Texts& lists, const Texts& scans);

std::string plan_answer(WhatIf texts, const StopAsked& stopped);

// `names` are clusters, or results folders, which take no other argument.
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
  std::string file;  // a sweep file or a study that ships; empty if the texts say it all
  std::string out;
  bool resume = false;
  Texts lists{}, scans{};
};
// Writes the folder, and returns the messages for the user.
Texts sweep_answer(const SweepWords& words, WhatIf texts, const StopAsked& stopped);

}  // namespace lambcast
