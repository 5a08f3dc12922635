#include "models/launchers/yaml.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include "sim/base/error.h"

namespace lambcast::launchers {
namespace {

using hjson::Kind;
using hjson::Value;

constexpr std::size_t most_keys = 2000;  // of one map: keys are compared with one another

struct Line {
  int number = 0;
  std::size_t indent = 0;
  std::string_view text;  // without indentation and trailing blanks
};

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

// The text before a comment: a '#' at the start or behind a blank, outside quotes.
std::string_view without_comment(std::string_view text) {
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool begins = i == 0 || std::string_view(" \t[{,").find(text[i - 1]) != text.npos;
    if (quote != 0)
      quote = c == quote ? 0 : quote;
    else if ((c == '"' || c == '\'') && begins)
      quote = c;
    else if (c == '#' && begins)
      return text.substr(0, i);
  }
  return text;
}

Value scalar_of(std::string_view text, int line) {
  Value value;
  value.line = line;
  value.text = text;
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  if (lower.empty() || lower == "~" || lower == "null") {
    value.text.clear();
    return value;
  }
  for (const auto& [word, truth] :
       {std::pair("true", true), std::pair("yes", true), std::pair("on", true),
        std::pair("false", false), std::pair("no", false), std::pair("off", false)})
    if (lower == word) {
      value.kind = Kind::boolean;
      value.boolean = truth;
      return value;
    }
  double number = 0;
  std::string plain(text);
  if (text.find_first_not_of("0123456789_") == text.npos) std::erase(plain, '_');
  const bool digits = plain.find_first_not_of("+-.eE0123456789") == plain.npos;
  const char *begin = plain.data(), *end = begin + plain.size();
  const auto read = std::from_chars(*begin == '+' ? begin + 1 : begin, end, number);
  value.kind = Kind::string;
  if (!digits || read.ec != std::errc() || read.ptr != end || !std::isfinite(number)) return value;
  value.kind = Kind::number;
  value.number = number;
  if (std::floor(number) == number && std::abs(number) < 9e15)
    value.whole = static_cast<std::int64_t>(number);
  return value;
}

[[noreturn]] void fail_yaml(const std::string& file, int line, std::string_view what) {
  fail_input({file, line, {}}, fmt::format("YAML: {}", what));
}

// Values within a line: scalars, and maps and lists in brackets.
class FlowReader {
 public:
  explicit FlowReader(const std::string& file) : file_(file) {}

  // A value at the start of `rest`, which it takes off; a plain one ends at any of `ends`.
  Value read(std::string_view& rest, int line, int depth, std::string_view ends) {
    if (depth > hjson::max_depth) fail_yaml(file_, line, "is nested too deeply");
    rest = trimmed(rest);
    if (rest.empty()) return scalar_of("", line);
    const char first = rest.front();
    if (std::string_view("&*!@`").find(first) != std::string_view::npos)
      fail_yaml(file_, line, "anchors, aliases and tags are not read");
    if (first == '{' || first == '[') return collection(rest, line, depth);
    if (first == '"' || first == '\'') return quoted(rest, line);
    const std::size_t end =
        ends.empty() ? rest.size() : std::min(rest.find_first_of(ends), rest.size());
    const Value value = scalar_of(trimmed(rest.substr(0, end)), line);
    rest.remove_prefix(end);
    return value;
  }

 private:
  Value quoted(std::string_view& rest, int line) const {
    Value value;
    value.kind = Kind::string;
    value.line = line;
    const char quote = rest.front();
    std::size_t i = 1;
    for (; i < rest.size(); ++i) {
      const bool escaped = i + 1 < rest.size() && ((quote == '"' && rest[i] == '\\') ||
                                                   (rest[i] == '\'' && rest[i + 1] == '\''));
      if (rest[i] == quote && !(escaped && quote == '\'')) break;
      if (escaped && (quote == '"' || rest[i] == quote)) ++i;
      value.text += rest[i];
    }
    if (i == rest.size()) fail_yaml(file_, line, "a quote is not closed on its line");
    rest.remove_prefix(i + 1);
    return value;
  }

  Value collection(std::string_view& rest, int line, int depth) {
    Value value;
    value.line = line;
    const bool object = rest.front() == '{';
    const char close = object ? '}' : ']';
    value.kind = object ? Kind::object : Kind::array;
    rest.remove_prefix(1);
    while (true) {
      rest = trimmed(rest);
      if (rest.empty()) fail_yaml(file_, line, fmt::format("'{}' is missing", close));
      if (rest.front() == close) break;
      if (object) {
        const Value key = read(rest, line, depth + 1, ":,}]");
        rest = trimmed(rest);
        if (rest.empty() || rest.front() != ':') fail_yaml(file_, line, "a key without ':'");
        rest.remove_prefix(1);
        if (value.members.size() == most_keys) fail_yaml(file_, line, "has too many keys");
        if (value.find(key.text) != nullptr)
          fail_yaml(file_, line, fmt::format("the key {} twice", key.text));
        value.members.push_back({key.text, line, read(rest, line, depth + 1, ",}]")});
      } else {
        value.items.push_back(read(rest, line, depth + 1, ",}]"));
      }
      rest = trimmed(rest);
      if (!rest.empty() && rest.front() == ',')
        rest.remove_prefix(1);
      else if (rest.empty() || rest.front() != close)
        fail_yaml(file_, line, fmt::format("',' or '{}' is missing", close));
    }
    rest.remove_prefix(1);
    return value;
  }

  const std::string& file_;
};

bool is_item(std::string_view text) { return text == "-" || text.starts_with("- "); }

// Position of the colon that ends a key; npos for none.
std::size_t end_of_key(std::string_view text) {
  if (!text.empty() && (text.front() == '"' || text.front() == '\'')) {
    const std::size_t close = text.find(text.front(), 1);
    return close == text.npos || close + 1 >= text.size() || text[close + 1] != ':' ? text.npos
                                                                                    : close + 1;
  }
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] == ':' && (i + 1 == text.size() || text[i + 1] == ' ' || text[i + 1] == '\t'))
      return i;
  return text.npos;
}

std::string key_of(std::string_view text) {
  text = trimmed(text);
  if (text.size() >= 2 && (text.front() == '"' || text.front() == '\''))
    text = text.substr(1, text.size() - 2);
  return std::string(text);
}

int open_brackets(std::string_view text) {
  int open = 0;
  for (const char c : text) open += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
  return open;
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& file) : file_(file) {
    int number = 1;
    for (std::size_t at = 0; at <= text.size(); ++number) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      add_line(text.substr(at, end - at), number);
      at = end + 1;
    }
  }

  Value root() {
    Value value;
    value.kind = Kind::object;
    value.line = 1;
    if (!lines_.empty()) value = block(lines_.front().indent, 0);
    if (next_ < lines_.size()) fail(lines_[next_].number, "is indented less than the lines before");
    if (value.kind != Kind::object) fail(1, "is no map of keys");
    return value;
  }

 private:
  [[noreturn]] void fail(int line, std::string_view what) const { fail_yaml(file_, line, what); }

  void add_line(std::string_view whole, int number) {
    const std::size_t indent = std::min(whole.find_first_not_of(' '), whole.size());
    const std::string_view text = trimmed(without_comment(whole.substr(indent)));
    if (text.empty()) return;
    if (whole[indent] == '\t') fail(number, "a tab indents the line");
    if (text == "---" && lines_.empty()) return;
    if (text == "---" || text == "...") fail(number, "a second document is not read");
    lines_.push_back({number, indent, text});
  }

  // Lists may stand as deep as the key that holds them.
  Value block(std::size_t indent, int depth) {
    if (depth > hjson::max_depth) fail(lines_[next_].number, "is nested too deeply");
    return is_item(lines_[next_].text) ? list(indent, depth) : map(indent, depth);
  }

  Value list(std::size_t indent, int depth) {
    Value value;
    value.kind = Kind::array;
    value.line = lines_[next_].number;
    while (next_ < lines_.size() && lines_[next_].indent == indent && is_item(lines_[next_].text)) {
      Line& line = lines_[next_];
      const std::string_view rest = trimmed(line.text.substr(1));
      const std::size_t inner = indent + (line.text.size() - rest.size());
      if (rest.empty()) {
        ++next_;
        value.items.push_back(nested(indent, indent + 1, line.number, depth));
      } else if (rest.front() != '{' && rest.front() != '[' &&
                 (is_item(rest) || end_of_key(rest) != rest.npos)) {
        line = {line.number, inner, rest};
        value.items.push_back(block(inner, depth + 1));
      } else {
        ++next_;
        value.items.push_back(inline_value(rest, line.number, indent, depth));
      }
    }
    return value;
  }

  Value map(std::size_t indent, int depth) {
    Value value;
    value.kind = Kind::object;
    value.line = lines_[next_].number;
    while (next_ < lines_.size() && lines_[next_].indent == indent) {
      const Line line = lines_[next_];
      const std::size_t colon = end_of_key(line.text);
      if (is_item(line.text) || colon == line.text.npos)
        fail(line.number, fmt::format("'{}' is no 'key: value'", line.text));
      const std::string key = key_of(line.text.substr(0, colon));
      if (value.members.size() == most_keys) fail(line.number, "has too many keys");
      if (value.find(key) != nullptr) fail(line.number, fmt::format("the key {} twice", key));
      ++next_;
      const std::string_view rest = trimmed(line.text.substr(colon + 1));
      Value of = rest.empty() ? nested(indent, indent, line.number, depth)
                              : inline_value(rest, line.number, indent, depth);
      value.members.push_back({key, line.number, std::move(of)});
    }
    if (next_ < lines_.size() && lines_[next_].indent > indent)
      fail(lines_[next_].number, "is indented more than the lines before");
    return value;
  }

  // The block behind a key or a '-' at `indent`: deeper, or a list as deep as `list_indent`.
  Value nested(std::size_t indent, std::size_t list_indent, int line, int depth) {
    Value none;
    none.line = line;
    if (next_ == lines_.size()) return none;
    const Line& first = lines_[next_];
    const bool deeper = first.indent > indent;
    if (!deeper && !(first.indent == list_indent && is_item(first.text))) return none;
    return block(first.indent, depth + 1);
  }

  Value inline_value(std::string_view text, int line, std::size_t indent, int depth) {
    if (text.front() == '|' || text.front() == '>') return folded(line, indent);
    std::string flow(text);
    if (text.front() == '{' || text.front() == '[') {
      for (int open = open_brackets(flow); open > 0 && next_ < lines_.size(); ++next_) {
        open += open_brackets(lines_[next_].text);
        flow += fmt::format(" {}", lines_[next_].text);
      }
    }
    std::string_view rest = flow;
    Value value = FlowReader(file_).read(rest, line, depth, "");
    if (!trimmed(rest).empty()) fail(line, fmt::format("'{}' is behind a value", trimmed(rest)));
    return value;
  }

  Value folded(int line, std::size_t indent) {
    Value value;
    value.kind = Kind::string;
    value.line = line;
    while (next_ < lines_.size() && lines_[next_].indent > indent)
      value.text += fmt::format("{}\n", lines_[next_++].text);
    return value;
  }

  const std::string& file_;
  std::vector<Line> lines_;
  std::size_t next_ = 0;
};

}  // namespace

Value parse_yaml(std::string_view text, const std::string& file) {
  return Parser(text, file).root();
}

}  // namespace lambcast::launchers
