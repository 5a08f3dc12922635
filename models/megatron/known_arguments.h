// The arguments of Megatron-LM and torchrun that are read or known to bear on no step's cost, so
// that a slip in a name is found.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lambcast::megatron {

// Without "--", with '-' for '_'.
const std::vector<std::string>& known_arguments();

// Whether it is read or refused.
bool bears_on_cost(std::string_view name);

}  // namespace lambcast::megatron
