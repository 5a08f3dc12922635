// Arguments of Megatron's programs that do not affect a step's cost, each with the reason, and
// existing arguments that are not applied.
#pragma once

#include <span>
#include <string_view>

#include "models/key_ledger.h"

namespace lambcast::megatron {

// Names of arguments without "--", with '-' for '_', separated by spaces.
std::span<const CostlessKeys> costless_groups();

// Returns why an argument does not affect a step's cost; empty for other arguments.
std::string_view costless_reason(std::string_view name);

// Returns the names of arguments that affect the cost of some run and are not applied.
std::string_view unmodelled_names();

// Returns whether an argument affects the cost but is not applied.
bool is_unmodelled(std::string_view name);

}  // namespace lambcast::megatron
