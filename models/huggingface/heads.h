// Reads the head of a model from the class in a config.json's `architectures`.
#pragma once

#include <string>
#include <string_view>

#include "models/huggingface/architectures.h"

namespace lambcast::huggingface {

// Adds the keys of a head other than one over the vocabulary. Throws Error (usage) for a class
// whose head no family has. A file without classes has the head of its family.
void describe_head(ConfigReader& config, std::string_view family, Description& model);

}  // namespace lambcast::huggingface
