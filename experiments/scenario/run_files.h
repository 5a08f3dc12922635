// Reads files of other programs that describe a run into a what-if: a Megatron-LM argument list
// (key megatron_args), a torchtitan job (torchtitan) and the structure of a cluster (topology).
// Values that the user gives override them. The DeepSpeed file (config) is handled elsewhere, since
// its values keep their lines.
#pragma once

#include <string>
#include <vector>

#include "experiments/scenario/catalog.h"
#include "experiments/scenario/scenario.h"
#include "models/finding.h"
#include "models/key_ledger.h"

namespace lambcast {

// Returns the what-if with the values of the files, and without the keys that name them. Throws
// Error (usage) for files that cannot be read or are not modelled, and for two runs at once.
WhatIf with_run_files(const WhatIf& asked, Catalog& catalog, std::vector<Finding>& findings);

// Returns whether a file may give the inputs that no flag gives.
bool has_run_files(const WhatIf& asked);

// Replaces a model that is a folder (a checkpoint of Hugging Face) by the folder's config.json.
// Throws Error (usage) for a folder without one.
void name_file_of_checkpoint(WhatIf& asked);

struct InputLedger {
  std::string file;
  std::vector<LedgerEntry> entries;
  std::vector<std::string> replaced = {};  // what-if keys that the file sets and flags replace
};

// Returns how each key of the input files was used.
std::vector<InputLedger> input_ledgers(const WhatIf& asked, Catalog& catalog);

}  // namespace lambcast
