// Findings about the input of commands whose answers contain none (compare, plan, sensitivity,
// solve). They are printed to stderr after the answer, each kind once, and only if stdout could be
// written.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "experiments/output/finding_tally.h"
#include "experiments/scenario/catalog.h"
#include "experiments/scenario/what_if.h"

namespace lambcast {

// Returns the findings of a question.
std::vector<Finding> findings_of(const WhatIf& asked, Catalog& catalog);

// Prints the findings that all these questions share; nothing if one of the questions does not run.
void print_findings(const std::vector<WhatIf>& questions, Catalog& catalog);

// Prints the findings of a tally, in brief if they are to fit a screen. `name` returns the name of
// a point.
void print_findings(const FindingTally& findings,
                    const std::function<std::string(std::size_t)>& name, bool brief = false);

}  // namespace lambcast
