#include "models/megatron/shell_test.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <span>

#include "models/megatron/shell_lexer.h"
#include "models/megatron/shell_values.h"

namespace lambcast::megatron {
namespace {

using enum ShellStatus;
using TestWords = std::span<const std::string>;

ShellStatus status_of(bool holds) { return holds ? yes : no; }

std::optional<std::int64_t> integer(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

ShellStatus compared(const std::string& left, const std::string& op, const std::string& right) {
  const bool compares = op == "=" || op == "==" || op == "!=";
  if (compares && !is_comparable(left, right)) return unknown;
  if (op == "=" || op == "==") return status_of(matches_pattern(left, right));
  if (op == "!=") return status_of(!matches_pattern(left, right));
  const auto a = integer(left), b = integer(right);
  if (!a || !b) return unknown;
  if (op == "-eq") return status_of(*a == *b);
  if (op == "-ne") return status_of(*a != *b);
  if (op == "-lt") return status_of(*a < *b);
  if (op == "-le") return status_of(*a <= *b);
  if (op == "-gt") return status_of(*a > *b);
  if (op == "-ge") return status_of(*a >= *b);
  return unknown;
}

ShellStatus primary(TestWords words, std::string& doubt) {
  if (!words.empty() && words.front() == "!") {
    const ShellStatus status = primary(words.subspan(1), doubt);
    return status == unknown ? unknown : status_of(status == no);
  }
  for (const std::string& word : words)
    if (const std::string name = missing_name(word); !name.empty()) return doubt = name, unknown;
  doubt = command_output;
  if (words.empty()) return no;
  if (words.size() == 1) return status_of(!words[0].empty());
  if (words.size() == 2 && words[0] == "-z") return status_of(words[1].empty());
  if (words.size() == 2 && words[0] == "-n") return status_of(!words[1].empty());
  return words.size() == 3 ? compared(words[0], words[1], words[2]) : unknown;
}

// Joins terms with `either` or `other`: a term with the status `decisive` decides the result.
template <typename Term>
ShellStatus joined(TestWords words, const char* either, const char* other, ShellStatus decisive,
                   Term term) {
  ShellStatus all = decisive == yes ? no : yes;
  for (;;) {
    const auto end = std::ranges::find_if(
        words, [&](const std::string& word) { return word == either || word == other; });
    const auto length = static_cast<std::size_t>(end - words.begin());
    const ShellStatus status = term(words.subspan(0, length));
    if (status == decisive) return decisive;
    if (status == unknown) all = unknown;
    if (length == words.size()) return all;
    words = words.subspan(length + 1);
  }
}

}  // namespace

ShellStatus shell_test(const std::vector<std::string>& words, std::string& doubt) {
  const auto both = [&](TestWords part) {
    return joined(part, "&&", "-a", no, [&](TestWords term) { return primary(term, doubt); });
  };
  return joined(TestWords(words), "||", "-o", yes, both);
}

}  // namespace lambcast::megatron
