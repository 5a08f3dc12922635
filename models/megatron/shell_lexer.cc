#include "models/megatron/shell_lexer.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>

namespace lambcast::megatron {
namespace {

constexpr std::size_t npos = std::string_view::npos;
constexpr int deepest = 100;

// Returns the index after the closing bracket that matches the one before `at`; quotes inside are
// skipped.
std::size_t after_bracket(std::string_view text, std::size_t at, char open, char close, int depth);

std::size_t after_double_quote(std::string_view text, std::size_t at, int depth);

std::size_t unit(std::string_view text, std::size_t at, int depth) {
  const char c = text[at];
  if (depth > deepest) return npos;
  if (c == '\\') return std::min(at + 2, text.size());
  if (c == '\'') {
    const std::size_t end = text.find('\'', at + 1);
    return end == npos ? npos : end + 1;
  }
  if (c == '"') return after_double_quote(text, at + 1, depth + 1);
  if (c == '`') {
    const std::size_t end = text.find('`', at + 1);
    return end == npos ? npos : end + 1;
  }
  if (c == '$' && at + 1 < text.size()) {
    if (text[at + 1] == '(') return after_bracket(text, at + 2, '(', ')', depth + 1);
    if (text[at + 1] == '{') return after_bracket(text, at + 2, '{', '}', depth + 1);
    if (text[at + 1] == '#') return at + 2;
  }
  return at + 1;
}

std::size_t after_double_quote(std::string_view text, std::size_t at, int depth) {
  while (at < text.size() && text[at] != '"') {
    at = text[at] == '\'' ? at + 1 : unit(text, at, depth);
    if (at == npos) return npos;
  }
  return at < text.size() ? at + 1 : npos;
}

std::size_t after_bracket(std::string_view text, std::size_t at, char open, char close, int depth) {
  int level = 1;
  while (at < text.size()) {
    if (text[at] == open) ++level;
    if (text[at] == close && --level == 0) return at + 1;
    at = unit(text, at, depth);
    if (at == npos) return npos;
  }
  return npos;
}

// Returns the parts of the text between braces: {a,b} or {1..4}; none if it is neither.
std::vector<std::string> brace_parts(std::string_view inside) {
  std::vector<std::string> parts;
  const std::size_t dots = inside.find("..");
  int first = 0, last = 0;
  const auto whole = [](std::string_view text, int& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc() && end == text.data() + text.size();
  };
  if (dots != npos && whole(inside.substr(0, dots), first) &&
      whole(inside.substr(dots + 2), last) && std::abs(static_cast<double>(first) - last) < 1000) {
    const int step = first <= last ? 1 : -1;
    for (int value = first; value != last + step; value += step)
      parts.push_back(std::to_string(value));
    return parts;
  }
  std::size_t begin = 0;
  for (std::size_t at = 0; at < inside.size();) {
    if (inside[at] == ',') {
      parts.emplace_back(inside.substr(begin, at - begin));
      begin = at + 1;
    }
    at = std::min(after_unit(inside, at), inside.size());
  }
  if (!parts.empty()) parts.emplace_back(inside.substr(begin));
  return parts;
}

bool is_letter(char c) { return c == '_' || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }

}  // namespace

ShellCursor::ShellCursor(std::string_view text, int first_line)
    : text_(text), first_line_(first_line) {
  for (std::size_t end = text.find('\n'); end != npos; end = text.find('\n', end + 1))
    line_ends_.push_back(end);
}

int ShellCursor::line() const {
  return first_line_ +
         static_cast<int>(std::ranges::lower_bound(line_ends_, at_) - line_ends_.begin());
}

void ShellCursor::skip_spaces() {
  for (; at_ < text_.size(); ++at_) {
    if (at("\\\n") || at("\\\r\n"))
      at_ += at("\\\n") ? 1 : 2;
    else if (std::string_view(" \t\r").find(text_[at_]) == npos)
      return;
  }
}

std::size_t after_unit(std::string_view text, std::size_t at) { return unit(text, at, 0); }

std::size_t after_word(std::string_view text, std::size_t at) {
  constexpr std::string_view enders = " \t\r\n;&|()<>";
  while (at < text.size() && enders.find(text[at]) == npos) {
    const bool continued = text[at] == '\\' && text.substr(at + 1).starts_with("\n");
    if (continued) break;
    at = after_unit(text, at);
    if (at == npos) return npos;
  }
  return at;
}

std::size_t variable_length(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size() &&
         (is_letter(text[length]) || (length > 0 && text[length] >= '0' && text[length] <= '9')))
    ++length;
  return length;
}

std::vector<std::string> brace_expanded(std::string_view word) {
  if (word.find('{') == npos) return {std::string(word)};
  std::vector<std::string> words{""};
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t next = std::min(after_unit(word, at), word.size());
    const std::size_t close = word[at] == '{' ? word.find('}', at) : npos;
    const auto parts = close == npos ? std::vector<std::string>()
                                     : brace_parts(word.substr(at + 1, close - at - 1));
    if (parts.size() * words.size() > 1000) return {std::string(word)};
    std::vector<std::string> longer;
    for (const std::string& begin : words)
      for (const std::string& part : parts) longer.push_back(begin + part);
    if (parts.empty())
      for (std::string& begin : words) begin += word.substr(at, next - at);
    else
      words = std::move(longer);
    at = parts.empty() ? next : close + 1;
  }
  return words;
}

bool read_here_document(std::string_view text, std::size_t& at, const HereDocument& document,
                        std::string& content) {
  std::string delimiter = document.delimiter;
  std::erase_if(delimiter, [](char c) { return c == '\'' || c == '"' || c == '\\'; });
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view row = text.substr(at, end - at);
    at = std::min(end + 1, text.size());
    while (document.tabs && row.starts_with('\t')) row.remove_prefix(1);
    if (row.ends_with('\r')) row.remove_suffix(1);
    if (row == delimiter) return true;
    content.append(row).append("\n");
  }
  return false;
}

bool is_comparable(std::string_view text, std::string_view pattern) {
  constexpr std::size_t most_product = 1 << 20;  // product of their lengths
  return pattern.find_first_of("[\\") == npos && text.size() * pattern.size() <= most_product;
}

bool is_plain_pattern(std::string_view source) {
  const bool quoted = source.find_first_of("'\"") != npos;
  return source.find_first_of("[\\") == npos && !(quoted && source.find_first_of("*?") != npos);
}

bool matches_pattern(std::string_view text, std::string_view pattern) {
  std::size_t t = 0, p = 0, star = npos, from = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p, ++t;
    } else if (star != npos) {
      p = star + 1;
      t = ++from;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', std::min(p, pattern.size())) == npos;
}

}  // namespace lambcast::megatron
