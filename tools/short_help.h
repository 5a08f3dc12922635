// Help that fits a screen. A command that takes every key of a what-if has 90 flags, of which most
// runs need a dozen: --help shows these, each with an example, and --help-all shows all of them.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace lambcast {

// The group of flags that are not keys, and that few runs need.
inline constexpr const char* rare_flags = "Phases and failures of a run";

// Omits the list of flags that exclude or need another: an error names them.
class HelpFormatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override;
};

// Adds --help-all to a command and its subcommands. It is listed if the flags of a command do not
// fit a screen; otherwise --help shows all of them already.
void add_help_all(CLI::App& command);

// Returns whether the flags of a command do not fit a screen.
bool has_short_help(const CLI::App& command);

// Returns the help of a command, with only the dozen usual flags if all flags do not fit a screen.
std::string short_help(CLI::App& command);

}  // namespace lambcast
