// Manual pages, completions and the reference for programs, written from the command tree that
// parses the flags.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace lambcast {

// Returns lambcast(1) with all commands, as roff.
std::string manual_page(const CLI::App& app);

// Return completions for `source` by bash, and for a folder of zsh's fpath (as _lambcast):
// commands, flags, values of flags, presets.
std::string bash_completion(const CLI::App& app);
std::string zsh_completion(const CLI::App& app);

// Returns commands with their flags and examples, and all topics of the reference, as JSON.
std::string json_reference(const CLI::App& app);

}  // namespace lambcast
