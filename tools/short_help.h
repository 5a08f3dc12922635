// Help that fits a screen. A command that takes every key of a what-if has 90 flags, of which most
// runs need a dozen: --help shows these, each with an example, and --help-all shows all of them.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace lambcast {

// The group of flags that are no key, and that few runs need.
inline constexpr const char* rare_flags = "Phases and failures of a run";

// Prints no list of the flags that exclude or need another: a refusal names them.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override;
};

// Adds --help-all to a command and its subcommands. Help lists it if a command's flags are more
// than a screen: --help of the others shows all of them already.
void add_help_all(CLI::App& command);

// Returns whether the flags of a command are more than a screen.
bool has_short_help(const CLI::App& command);

// Returns the help of a command, with the dozen flags alone if they are more than a screen.
std::string short_help(CLI::App& command);

}  // namespace lambcast
