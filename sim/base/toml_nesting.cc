#include "sim/base/toml_nesting.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace lambcast {
namespace {

// Limits of the parts of a key and of nested brackets; descriptions have up to five parts and four
// levels. The product of the limits bounds the depth of tables.
constexpr int most_parts = 32, most_levels = 32;

// Returns the position after the string literal that begins at `at`. An unclosed literal ends with
// its line, or with the text if it has triple quotes.
std::size_t behind_string(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const std::string_view triple = quote == '"' ? R"(""")" : "'''";
  const std::string_view end = text.substr(at).starts_with(triple) ? triple : triple.substr(0, 1);
  for (at += end.size(); at < text.size(); ++at) {
    if (text.substr(at).starts_with(end)) return at + end.size();
    if (text[at] == '\n' && end.size() == 1) return at;
    if (text[at] == '\\' && quote == '"') ++at;
  }
  return text.size();
}

}  // namespace

void check_nesting(std::string_view text, const Where& where) {
  int parts = 1, levels = 0, line = 1;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    std::size_t next = at + 1;
    if (c == '"' || c == '\'') next = behind_string(text, at);
    if (c == '#') next = std::min(text.find('\n', at), text.size());
    if (c == '.') ++parts;
    if (c == '[' || c == '{') ++levels;
    if (c == ']' || c == '}') levels = std::max(0, levels - 1);
    if (std::string_view("\n=,[]{}").find(c) != std::string_view::npos) parts = 1;
    if (parts > most_parts)
      fail_input({where.file, line, where.key}, "a key has too many parts",
                 fmt::format("at most {}", most_parts));
    if (levels > most_levels)
      fail_input({where.file, line, where.key}, "lists and tables are nested too deeply",
                 fmt::format("at most {} levels", most_levels));
    line += static_cast<int>(std::count(text.begin() + static_cast<std::ptrdiff_t>(at),
                                        text.begin() + static_cast<std::ptrdiff_t>(next), '\n'));
    at = next;
  }
}

std::string fault_of_toml(std::string_view description) {
  constexpr std::string_view parsing = "Error while parsing ", newline = "'\\n'";
  if (description.starts_with(parsing)) description.remove_prefix(parsing.size());
  std::string said(description);
  if (const std::size_t at = said.find(newline); at != std::string::npos)
    said.replace(at, newline.size(), "the end of the line");
  return fmt::format("is not a valid TOML: {}", said);
}

}  // namespace lambcast
