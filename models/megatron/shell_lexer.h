// Finds the ends of shell words in their source, including quotes and substitutions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lambcast::megatron {

// Returns the index after the quote, ${...}, $(...), or backquotes that begin at `at`, or after a
// single other character; npos if it is not closed.
std::size_t after_unit(std::string_view text, std::size_t at);

// Returns the index after the word that begins at `at`; npos if it is not closed.
std::size_t after_word(std::string_view text, std::size_t at);

// Returns the length of the variable name at the start of `text`; 0 if there is none.
std::size_t variable_length(std::string_view text);

// Returns the words that an unquoted word with {a,b} or {1..4} expands to; the word itself if it
// has no braces, or for more than 1000 words.
std::vector<std::string> brace_expanded(std::string_view word);

struct HereDocument {
  std::string delimiter;                      // text as in the script, with its quotes
  bool tabs = false;                          // "<<-": leading tabs are dropped
  std::string target;                         // the file that receives it
  std::vector<std::string_view> reader = {};  // words of the command whose input it is
};

// Reads the lines from `at` to the delimiter and moves `at` after it. Returns false at the end of
// the text.
bool read_here_document(std::string_view text, std::size_t& at, const HereDocument& document,
                        std::string& content);

// A position in a shell text.
class ShellCursor {
 protected:
  ShellCursor(std::string_view text, int first_line);

  int line() const;
  bool at(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  // Skips blanks and line continuations.
  void skip_spaces();

  std::string_view text_;
  std::size_t at_ = 0;

 private:
  int first_line_;
  std::vector<std::size_t> line_ends_;
};

// Returns whether a text can be compared with a pattern: both are short, without bracketed parts.
bool is_comparable(std::string_view text, std::string_view pattern);

// Returns whether the source of a pattern can be compared: it has no '[' or backslash, and not both
// quotes and the wildcards '*' or '?'.
bool is_plain_pattern(std::string_view source);

// Returns whether `text` matches a shell pattern of characters, '*' and '?'.
bool matches_pattern(std::string_view text, std::string_view pattern);

}  // namespace lambcast::megatron
