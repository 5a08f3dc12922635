// Converts arguments of Megatron's programs to the description of their model, in TOML
// (models/shape/load.h).
#pragma once

#include <string>

#include "models/megatron/argument_reader.h"

namespace lambcast::megatron {

struct ModelDescription {
  std::string toml;
  bool lacks_vocabulary = false;  // no argument determines `vocab`
};

// Returns the description. Throws Error (usage) with file, line and argument.
ModelDescription describe_model(const ArgumentReader& read);

// Returns whether the model has experts. Megatron-DeepSpeed's default of one expert is a dense
// model.
bool has_experts(const ArgumentReader& read);

}  // namespace lambcast::megatron
