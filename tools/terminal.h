// Output for people: on a terminal it is wrapped to the width, with the verdict in colour; to a
// file or pipe it is unchanged. Only help has at most 80 columns, since wide lists are hard to
// read. Also the flags of all commands: --color, --quiet, --verbose.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lambcast {

enum class Color { automatic, always, never };

struct TerminalSettings {
  // automatic: colour on a terminal, unless NO_COLOR is set (no-color.org) or TERM is dumb
  Color color = Color::automatic;
  bool quiet = false;    // no progress and no notes: only results and errors
  bool verbose = false;  // also the time and work of the program
};

// Settings of this process; main() sets them before a command runs.
TerminalSettings& terminal_settings();

// Prints a result for people to stdout; without its notes if --quiet is set.
void print_text(std::string_view text);

// Prints help to stdout, for 80 columns or a narrower terminal.
void show_help(std::string_view text);

// Returns whether no line would be broken on the terminal; always true for a file or pipe.
bool fits_terminal(std::string_view text);

// Prints an error to stderr as one line, wrapped on a terminal; errors of several places are
// separated by semicolons.
void complain(std::string_view message);

// Prints a note to stderr in the same way; nothing if --quiet is set.
void say(std::string_view message);

// Breaks lines longer than `width` at spaces. Sentences continue at their own indentation, the help
// of a flag and text in a table's last column at theirs, a command after a backslash, and a row of
// figures that is wider than the terminal with more indentation.
std::string wrapped(std::string_view text, std::size_t width);

// Colours words of the verdict: "Pays" green, "Does not pay" red, "warning:" yellow, at the
// beginning of a line; "PAST ITS LIMIT" and similar words anywhere.
std::string painted(std::string_view text);

}  // namespace lambcast
