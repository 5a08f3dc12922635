// Messages about words that are rejected before a command runs, in the form of all other errors.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace lambcast {

// Returns a message that names everything that a command requires and that is missing, with the
// first example of its help. Returns `otherwise` if only one flag is missing and there is no
// example.
std::string missing_words(const CLI::App& app, const std::string& otherwise);

// Returns a message about an unknown flag or command, with a suggestion for the first that has one.
// `words` are those of the command, last first; `commands_with` returns the commands that have a
// flag.
std::string unknown_words(const CLI::App& app, const std::vector<std::string>& words,
                          std::string (*commands_with)(const std::string& flag));

// Returns CLI11's message about a value, as "FLAG: what is wrong (allowed: ...)".
std::string in_our_words(const CLI::ParseError& error);

}  // namespace lambcast
