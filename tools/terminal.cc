#include "tools/terminal.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "sim/base/printable.h"

namespace lambcast {
namespace {

constexpr std::size_t narrowest = 40, help_width = 80;

// Returns whether a stream is a terminal. Open MPI's mpirun gives every rank a terminal, even if
// its own stdout is a file.
bool is_on_terminal(int stream) {
  return isatty(stream) == 1 && std::getenv("OMPI_COMM_WORLD_RANK") == nullptr;
}

bool wants_color() {
  if (terminal_settings().color != Color::automatic)
    return terminal_settings().color == Color::always;
  const char* none = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return is_on_terminal(STDOUT_FILENO) && (none == nullptr || *none == '\0') &&
         !(term != nullptr && std::string_view(term) == "dumb");
}

std::size_t width_of(int terminal) {
  winsize size{};
  if (ioctl(terminal, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    return std::max<std::size_t>(narrowest, size.ws_col);
  return 80;
}

std::size_t indent_of(std::string_view line) {
  return std::min(line.find_first_not_of(' '), line.size());
}

// Returns whether a line is an example command, possibly after a launcher and variables: "mpirun -n
// 8 lambcast measure".
bool is_command(std::string_view line) {
  const std::string_view text = line.substr(indent_of(line));
  const std::string_view first = text.substr(0, text.find(' '));
  const bool launches = first == "mpirun" || first == "srun" || first.find('=') != first.npos;
  return first == "lambcast" || (launches && text.find(" lambcast ") != text.npos);
}

// Returns the column of the text after a flag or in the last column of a table; nothing for a
// sentence.
std::size_t column_of(std::string_view line) {
  const std::size_t gap = line.rfind("  ", line.find_last_not_of(' '));
  return gap == std::string_view::npos || gap < indent_of(line) ? std::string_view::npos : gap + 2;
}

void append_wrapped(std::string& out, std::string_view line, std::size_t width, std::size_t hang,
                    std::string_view tie) {
  std::string before;  // indentation of every line except the first
  while (before.size() + line.size() > width) {
    const std::size_t room = width - before.size() - tie.size();
    std::size_t end = line.rfind(' ', room), next = end + 1;
    if (end == std::string_view::npos || (before.empty() && end <= hang)) {
      // A list without spaces is broken after a comma.
      end = next = line.rfind(',', room - 1) + 1;
      if (end == 0 || !tie.empty()) break;
    }
    out += before;
    out += line.substr(0, end);
    out += tie;
    out += '\n';
    line.remove_prefix(next);
    before.assign(hang, ' ');
  }
  out += before;
  out += line;
}

std::string without_notes(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n') + 1);
    if (line.empty()) return out += text;
    if (!line.starts_with("note: ") && !line.starts_with("notes: ")) out += line;
    text.remove_prefix(line.size());
  }
  return out;
}

}  // namespace

TerminalSettings& terminal_settings() {
  static TerminalSettings settings;
  return settings;
}

std::string wrapped(std::string_view text, std::size_t width) {
  std::string out, command;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const bool goes_on = line.ends_with(" \\");
    if (goes_on || !command.empty()) {
      // A command over several lines is joined, and broken again.
      if (goes_on) line.remove_suffix(2);
      command +=
          command.empty() ? std::string(line) : " " + std::string(line.substr(indent_of(line)));
      if (goes_on) continue;
      append_wrapped(out, command, width, indent_of(command) + 2, " \\");
      command.clear();
    } else if (is_command(line)) {
      append_wrapped(out, line, width, indent_of(line) + 2, " \\");
    } else {
      const std::size_t column = column_of(line);
      if (column == std::string_view::npos)
        append_wrapped(out, line, width, indent_of(line), "");
      else
        append_wrapped(out, line, width, column <= width / 2 ? column : indent_of(line) + 4, "");
    }
    out += '\n';
  }
  return out;
}

std::string painted(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 10> words{
      {{"Pays", "\033[1;32m"},
       {"Does not pay", "\033[1;31m"},
       {"None", "\033[1;31m"},
       {"No difference", "\033[1;33m"},
       {"Not certain", "\033[1;33m"},
       {"Not judged", "\033[1;33m"},
       {"Does not fit", "\033[1;31m"},
       {"warning:", "\033[33m"},
       {"error:", "\033[31m"},
       {"note:", "\033[36m"}}};
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> anywhere{
      {{"PAST ITS LIMIT", "\033[1;31m"},
       {"PAST LIMITS", "\033[1;31m"},
       {"DOES NOT FIT", "\033[1;31m"},
       {"does not fit", "\033[31m"},
       {"within limits", "\033[1;32m"}}};
  std::string out;
  const auto paint = [&](std::string_view& line, std::string_view word, std::string_view color) {
    out += fmt::format("{}{}\033[0m", color, word);
    line.remove_prefix(word.size());
  };
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end);
    for (const auto& [word, color] : words) {
      if (!line.starts_with(word)) continue;
      paint(line, word, color);
      break;
    }
    for (const auto& [word, color] : anywhere) {
      const std::size_t at = line.find(word);
      if (at == std::string_view::npos) continue;
      out += line.substr(0, at);
      line.remove_prefix(at);
      paint(line, word, color);
    }
    out += line;
  }
  return out;
}

void print_text(std::string_view text) {
  std::string out = terminal_settings().quiet ? without_notes(text) : std::string(text);
  if (is_on_terminal(STDOUT_FILENO)) out = wrapped(out, width_of(STDOUT_FILENO));
  if (wants_color()) out = painted(out);
  fmt::print("{}", out);
}

void show_help(std::string_view text) {
  const std::size_t width = is_on_terminal(STDOUT_FILENO) ? width_of(STDOUT_FILENO) : help_width;
  fmt::print("{}", wrapped(text, std::min(help_width, width)));
}

bool fits_terminal(std::string_view text) {
  if (!is_on_terminal(STDOUT_FILENO)) return true;
  const std::size_t width = width_of(STDOUT_FILENO);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (end > width) return false;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return true;
}

void complain(std::string_view message) {
  std::string line = fmt::format("lambcast: {}\n", one_line(message));
  if (is_on_terminal(STDERR_FILENO)) line = wrapped(line, width_of(STDERR_FILENO));
  fmt::print(stderr, "{}", line);
}

void say(std::string_view message) {
  if (!terminal_settings().quiet) complain(message);
}

}  // namespace lambcast
