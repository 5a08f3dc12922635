// Manual pages, completions and the reference for programs, written from the tree of commands that
// parses the flags.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace lambcast {

// lambcast(1), all commands in it, as roff.
std::string manual_page(const CLI::App& app);

// For `source` by bash, and for a folder of zsh's fpath (as _lambcast): commands, flags, the words
// that a flag may have, presets.
std::string bash_completion(const CLI::App& app);
std::string zsh_completion(const CLI::App& app);

// Commands with their flags and examples, and all topics of the reference, as JSON.
std::string json_reference(const CLI::App& app);

}  // namespace lambcast
