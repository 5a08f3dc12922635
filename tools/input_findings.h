// What is found of the input of commands whose answer lists no findings (compare, plan,
// sensitivity, solve): on stderr, each kind once, so that no command takes an odd input without a
// word.
#pragma once

#include <functional>
#include <string>

#include "experiments/catalog.h"
#include "experiments/finding_tally.h"
#include "experiments/what_if.h"

namespace lambcast {

// Prints the findings of the run that `asked` describes. Prints nothing if it describes none.
void print_findings(const WhatIf& asked, Catalog& catalog);

// `name` gives the name of a point of the tally.
void print_findings(const FindingTally& findings,
                    const std::function<std::string(std::size_t)>& name);

}  // namespace lambcast
