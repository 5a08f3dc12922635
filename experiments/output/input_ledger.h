// Lists how each key of a what-if's input files is used, as text.
#pragma once

#include <string>

#include "experiments/scenario/catalog.h"
#include "experiments/scenario/run_files.h"
#include "experiments/scenario/scenario.h"

namespace lambcast {

// Returns the counts of a file's keys by treatment, and a row for each key.
std::string ledger_table(const InputLedger& ledger);

// Throws Error (usage) if no input file is given whose keys can be explained.
std::string explain_inputs(const WhatIf& asked, Catalog& catalog);

}  // namespace lambcast
