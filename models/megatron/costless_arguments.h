// Arguments of Megatron's programs that bear on no step's cost, each with the reason, and real ones
// that are not applied.
#pragma once

#include <span>
#include <string_view>

namespace lambcast::megatron {

// Names are without "--", with '-' for '_', separated by spaces.
struct CostlessGroup {
  std::string_view reason, names;
};

std::span<const CostlessGroup> costless_groups();

// Returns why an argument bears on no step's cost; empty for other arguments.
std::string_view costless_reason(std::string_view name);

// Whether it is an argument that bears on the cost and is not applied.
bool is_unmodelled(std::string_view name);

}  // namespace lambcast::megatron
