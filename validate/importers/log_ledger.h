// The effect of each key of a log: of tables of collectives (importers.h) and of training programs
// (validate/program/training_log.h).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/key_ledger.h"

namespace lambcast::validate {

std::span<const KeyNames> collective_keys();
std::span<const KeyNames> step_keys();

// Returns an entry for each key of the log, in its order: keys of JSON, columns and settings of
// tables, and names with a number in the rows of training steps. A key in no list gets
// Treatment::named. Columns of metrics.csv, which may have any name, are left out.
std::vector<LedgerEntry> log_ledger(std::string_view text);

}  // namespace lambcast::validate
