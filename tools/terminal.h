// How text reaches people: on a terminal wrapped to its width and with the verdict in colour, to a
// file or pipe as it is. Help alone is laid out for 80 columns at most, since its lists are hard to
// read when wider. What was asked of all commands: --color, --quiet, --verbose.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lambcast {

enum class Color { automatic, always, never };

struct TerminalSettings {
  // automatic: on a terminal, unless NO_COLOR is set (no-color.org) or TERM is dumb
  Color color = Color::automatic;
  bool quiet = false;    // no progress and no notes: results and errors alone
  bool verbose = false;  // what the program took
};

// Settings of this process; main() sets them before a command runs.
TerminalSettings& terminal_settings();

// A result for people, to stdout; without its notes with --quiet.
void print_text(std::string_view text);

// Prints help to stdout: laid out for 80 columns, or for a narrower terminal.
void show_help(std::string_view text);

// Whether no line would be broken there; always true of a file or pipe.
bool fits_terminal(std::string_view text);

// Prints an error to stderr as one line, wrapped on a terminal; errors of several places are
// separated by semicolons.
void complain(std::string_view message);

// A note on stderr in the same way; nothing with --quiet.
void say(std::string_view message);

// Lines longer than `width` broken at spaces. Sentences go on under their own beginning, the help
// of a flag and text in a table's last column under itself, a command with a backslash, and a row
// of figures that is wider than the terminal further in.
std::string wrapped(std::string_view text, std::size_t width);

// Words that carry the verdict in colour: "Pays" green, "Does not pay" red, "warning:" yellow, at
// the beginning of a line; "PAST ITS LIMIT" and the like anywhere.
std::string painted(std::string_view text);

}  // namespace lambcast
