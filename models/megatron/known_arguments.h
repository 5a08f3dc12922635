// The arguments of Megatron-LM and torchrun that are read or known to bear on no step's cost, so
// that a slip in a name is found.
#pragma once

#include <string>
#include <vector>

namespace lambcast::megatron {

// Without "--", with '-' for '_'.
const std::vector<std::string>& known_arguments();

}  // namespace lambcast::megatron
