// The effect of each key of descriptions: of clusters, devices and models in TOML, and of the
// structure of a cluster as other programs write it (topologies/foreign_description.h).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/key_ledger.h"

namespace lambcast {

std::span<const KeyNames> topology_keys();

// Returns an entry for each key of a description in TOML. All keys are applied, since the reader
// rejects unknown keys, except `name` and `description`.
std::vector<LedgerEntry> description_ledger(std::string_view text);

// Returns an entry for each attribute of NCCL's XML, each kind of column of nvidia-smi's matrix,
// and each key of Slurm's files. A key in no list gets Treatment::named.
std::vector<LedgerEntry> topology_ledger(std::string_view text);

// Returns the names of a topology's keys that are in no list, separated by ", ".
std::string unknown_topology_keys(std::string_view text);

}  // namespace lambcast
