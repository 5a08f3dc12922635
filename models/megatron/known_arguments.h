// Arguments of Megatron-LM, Megatron-DeepSpeed and torchrun that affect a step's cost, for finding
// misspelt names.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lambcast::megatron {

// Returns argument names without "--", with '-' for '_'.
const std::vector<std::string>& known_arguments();

// An argument that affects the cost and is not modelled, and a sentence on the assumption used
// instead.
struct NamedArgument {
  std::string_view name, sentence;
};

std::span<const NamedArgument> named_arguments();

// Returns arguments with which a run is refused, for any value.
std::span<const std::string_view> refused_arguments();

// Returns whether an argument is read or refused.
bool bears_on_cost(std::string_view name);

}  // namespace lambcast::megatron
