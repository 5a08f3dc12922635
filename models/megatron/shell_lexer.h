// Finds the ends of shell words in their source, quotes and substitutions included.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lambcast::megatron {

// Returns the index after the quote, ${...}, $(...), or backquotes that begin at `at`, or the next
// character; npos if it is not closed.
std::size_t after_unit(std::string_view text, std::size_t at);

// Returns the index after the word that begins at `at`; npos if it is not closed.
std::size_t after_word(std::string_view text, std::size_t at);

// Returns the length of the variable name that `text` begins with; 0 if there is none.
std::size_t variable_length(std::string_view text);

// Returns the words that {a,b} and {1..4} in an unquoted word stand for; the word itself if it has
// none, or more than 1000.
std::vector<std::string> brace_expanded(std::string_view word);

struct HereDocument {
  std::string delimiter;  // as it stands in the script, with its quotes
  bool tabs = false;      // "<<-": tabs that begin a row are dropped
  std::string target;     // the file that receives it
};

// Reads the rows from `at` to the delimiter and moves `at` behind it. Returns false at the end of
// the text.
bool read_here_document(std::string_view text, std::size_t& at, const HereDocument& document,
                        std::string& content);

// A place in a shell text.
class ShellCursor {
 protected:
  ShellCursor(std::string_view text, int first_line);

  int line() const;
  bool at(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  // Skips blanks and lines that go on.
  void skip_spaces();

  std::string_view text_;
  std::size_t at_ = 0;

 private:
  int first_line_;
  std::vector<std::size_t> line_ends_;
};

// Whether a text is compared with a pattern: neither has bracketed parts, and both are short.
bool is_comparable(std::string_view text, std::string_view pattern);

// Whether `text` matches a shell pattern of letters, '*' and '?'.
bool matches_pattern(std::string_view text, std::string_view pattern);

}  // namespace lambcast::megatron
