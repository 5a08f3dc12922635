// The treatment of each key of the input files of a what-if, as text.
#pragma once

#include <string>

#include "experiments/scenario/catalog.h"
#include "experiments/scenario/scenario.h"

namespace lambcast {

// Throws Error (usage) if no input file is given whose keys are told.
std::string explain_inputs(const WhatIf& asked, Catalog& catalog);

}  // namespace lambcast
