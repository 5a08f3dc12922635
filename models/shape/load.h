// From a name or a file to a ModelShape.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/shape/shape.h"
#include "sim/base/table.h"

namespace lambcast {

// One `--set KEY=VALUE`; the key as it stands in the description, "model.layers".
struct ModelOverride {
  std::string key;
  std::string value;
};

// The models that ship inside, in the order they are documented, and the description of one.
std::vector<std::string> model_presets();
std::string_view model_preset_text(std::string_view name);

// `name_or_path` is a file if it has a slash or ends in ".toml", else a preset. Throws Error
// (usage) with file, line and key for an unknown preset (with a guess), an unreadable file, an
// unknown or missing key, a value out of range, and more than 1e15 parameters.
ModelShape load_model(const std::string& name_or_path,
                      std::span<const ModelOverride> overrides = {});
// The same of a description that was parsed already and has nothing set.
ModelShape load_model(Table description, const std::string& name_or_path,
                      std::span<const ModelOverride> overrides);

// Returns a preset as it ships, parsed once for the whole program: any forecast may need one next
// to its own model.
const ModelShape& model_preset(std::string_view name);
// The same, or null if no preset has the name.
const ModelShape* find_model_preset(std::string_view name);

}  // namespace lambcast
