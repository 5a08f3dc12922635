// Loads a ModelShape by name or from a file.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/shape/shape.h"
#include "sim/base/table.h"

namespace lambcast {

// One `--set KEY=VALUE`. The key is the one in the description, such as "model.layers".
struct ModelOverride {
  std::string key;
  std::string value;
};

// Return the names of the shipped models in documentation order, and the description of one of
// them.
std::vector<std::string> model_presets();
std::string_view model_preset_text(std::string_view name);

// Loads a file if `name_or_path` has a slash or ends in ".toml", else a preset. Throws Error
// (usage) with file, line and key for an unknown preset (with a suggestion), an unreadable file, an
// unknown or missing key, a value out of range, and more than 1e15 parameters.
ModelShape load_model(const std::string& name_or_path,
                      std::span<const ModelOverride> overrides = {});
// Loads a model from a description that is parsed but has no overrides yet.
ModelShape load_model(Table description, const std::string& name_or_path,
                      std::span<const ModelOverride> overrides);

// Returns an unchanged preset, parsed once for the whole program: any forecast may need one in
// addition to its own model.
const ModelShape& model_preset(std::string_view name);
// Returns the preset of this name, or null if there is none.
const ModelShape* find_model_preset(std::string_view name);

}  // namespace lambcast
