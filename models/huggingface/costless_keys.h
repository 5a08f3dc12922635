// Keys of a config.json that do not affect a step's cost.
#pragma once

#include <span>
#include <string_view>

#include "models/key_ledger.h"

namespace lambcast::huggingface {

std::span<const CostlessKeys> costless_groups();

// Returns why a key does not affect a step's cost; empty for other keys.
std::string_view costless_reason(std::string_view key);

}  // namespace lambcast::huggingface
