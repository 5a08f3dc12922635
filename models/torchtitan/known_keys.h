// Names of keys in torchtitan's job files. Source: torchtitan, torchtitan/config_manager.py and
// config/job_config.py, releases of 2024 to 2026.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lambcast::torchtitan {

using Names = std::vector<std::string>;

// Return the keys of each section that are read or do not affect a step's cost, and the sections
// that are never read.
const std::map<std::string, Names>& known_keys();
const Names& silent_sections();

// Returns known keys that do not affect a step's cost, each with a space before and after it.
std::string_view files_and_values();

// A key that affects a step's cost and is not applied: its usual value, and a sentence on the
// assumption used for other values.
struct NamedKey {
  const char *section, *key, *usual, *sentence;
};
std::span<const NamedKey> named_keys();

}  // namespace lambcast::torchtitan
