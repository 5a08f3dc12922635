// Names of torchtitan's job files.
// Source: torchtitan, torchtitan/config_manager.py and config/job_config.py, releases of 2024 to
// 2026.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lambcast::torchtitan {

using Names = std::vector<std::string>;

// Read, or known to bear on no step's cost; sections without names are left unread.
const std::map<std::string, Names>& known_keys();
const Names& silent_sections();

// Known keys that bear on no step's cost, each with a space before and behind it.
std::string_view files_and_values();

// Keys that bear on a step's cost and are not applied, with what is taken instead of a value other
// than the usual one.
struct NamedKey {
  const char *section, *key, *usual, *sentence;
};
std::span<const NamedKey> named_keys();

}  // namespace lambcast::torchtitan
