// The effect of each key of a DeepSpeed file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/key_ledger.h"

namespace lambcast::deepspeed {

// Keys are dotted: "zero_optimization.stage". Throws Error like parse_config().
std::vector<LedgerEntry> key_ledger(std::string_view text, const std::string& file);

// Returns why keys of Bearing::silent do not affect the cost.
std::string_view silent_reason();

}  // namespace lambcast::deepspeed
