// Arguments of Megatron-LM, Megatron-DeepSpeed and torchrun that bear on a step's cost, so that a
// slip in a name is found.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lambcast::megatron {

// Without "--", with '-' for '_'.
const std::vector<std::string>& known_arguments();

// An argument that bears on the cost and is not modelled, with what is taken instead.
struct NamedArgument {
  std::string_view name, sentence;
};

std::span<const NamedArgument> named_arguments();

// Whether it is read or refused.
bool bears_on_cost(std::string_view name);

}  // namespace lambcast::megatron
