#include "models/deepspeed/hjson.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "models/deepspeed/python_number.h"
#include "models/deepspeed/python_text.h"
#include "sim/base/error.h"

namespace lambcast::hjson {
namespace {

constexpr std::string_view punctuators = "{}[],:";

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n'; }

std::string_view trim(std::string_view text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

class Parser {
 public:
  Parser(std::string text, const std::string& file) : text_(std::move(text)), file_(file) {}

  Value root() {
    skip_blanks();
    Value value;
    if (peek() == '[') fail("the root is an array", "an object");
    if (peek() == '{') {
      value = parse_value(0);
    } else {
      value.kind = Kind::object;
      value.line = line_;
      parse_members(value, 0, /*braces=*/false);
    }
    skip_blanks();
    if (at_ < text_.size()) fail("text after the end of the configuration");
    return value;
  }

 private:
  [[noreturn]] void fail(std::string_view what, std::string_view allowed = {}) const {
    fail_input({file_, line_, {}}, what, allowed);
  }

  bool at_end() const { return at_ >= text_.size(); }
  // Returns the character `ahead` positions after the next one. NUL also marks the end, so use
  // at_end() if a NUL in the text matters.
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  bool starts(std::string_view what) const { return text_.compare(at_, what.size(), what) == 0; }
  char take() {
    const char c = text_[at_++];
    if (c == '\n') {
      ++line_;
      line_start_ = at_;
    }
    return c;
  }

  void skip_blanks() {
    while (!at_end()) {
      if (is_space(peek())) {
        take();
      } else if (peek() == '#' || starts("//")) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (starts("/*")) {
        const std::size_t end = text_.find("*/", at_ + 2);
        if (end == std::string::npos) fail("a comment /* is never closed");
        while (at_ < end + 2) take();
      } else {
        return;
      }
    }
  }

  Value parse_value(int depth) {
    if (depth >= max_depth) fail(fmt::format("nested more than {} levels deep", max_depth));
    Value value;
    value.line = line_;
    if (starts("'''")) {
      value.kind = Kind::string;
      value.text = parse_multiline();
    } else if (peek() == '"' || peek() == '\'') {
      value.kind = Kind::string;
      value.text = parse_quoted();
    } else if (peek() == '{') {
      take();
      value.kind = Kind::object;
      parse_members(value, depth, /*braces=*/true);
    } else if (peek() == '[') {
      take();
      value.kind = Kind::array;
      parse_items(value, depth);
    } else {
      parse_quoteless(value);
    }
    return value;
  }

  void skip_comma() {
    skip_blanks();
    if (peek() == ',') {
      take();
      skip_blanks();
    }
  }

  void parse_members(Value& object, int depth, bool braces) {
    std::map<std::string, int> count;
    skip_blanks();
    while (braces ? peek() != '}' : !at_end()) {
      if (at_end()) fail(fmt::format("the '{{' of line {} is never closed", object.line));
      Member member;
      member.line = line_;
      member.key = parse_key();
      ++count[member.key];
      skip_blanks();
      if (peek() != ':') fail(fmt::format("no ':' after the key '{}'", member.key));
      take();
      skip_blanks();
      member.value = parse_value(depth + 1);
      object.members.push_back(std::move(member));
      skip_comma();
    }
    if (braces) take();
    refuse_duplicates(object, count);
  }

  void refuse_duplicates(const Value& object, const std::map<std::string, int>& count) const {
    if (count.size() == object.members.size()) return;
    std::string duplicates;
    Where where{file_, 0, {}};
    std::map<std::string, int> seen;
    for (const Member& member : object.members) {
      if (count.at(member.key) == 1 || ++seen[member.key] != 2) continue;
      if (where.line == 0) where = {file_, member.line, member.key};
      duplicates += fmt::format("{}'{}'", duplicates.empty() ? "" : ", ", member.key);
    }
    fail_input(where, fmt::format("Duplicate keys in DeepSpeed config: [{}]", duplicates));
  }

  void parse_items(Value& array, int depth) {
    skip_blanks();
    while (peek() != ']') {
      if (at_end()) fail(fmt::format("the '[' of line {} is never closed", array.line));
      array.items.push_back(parse_value(depth + 1));
      skip_comma();
    }
    take();
  }

  std::string parse_key() {
    if (peek() == '"' || peek() == '\'') return parse_quoted();
    const std::size_t begin = at_;
    while (!at_end() && peek() != ':') {
      if (punctuators.find(peek()) != std::string_view::npos)
        fail(fmt::format("'{}' where a key was expected", peek()));
      take();
    }
    const std::string_view key = trim(std::string_view(text_).substr(begin, at_ - begin));
    const auto blank = std::find_if(key.begin(), key.end(), is_space);
    const std::string first_word(key.begin(), blank);
    if (at_end()) fail(fmt::format("the file ends without a ':' after '{}'", first_word));
    if (key.empty()) fail("a ':' without a key before it");
    if (blank != key.end())
      fail(fmt::format("a blank after '{}', inside a key", first_word), "quotes around the key");
    return std::string(key);
  }

  std::string parse_quoted() {
    const int first_line = line_;
    const char quote = take();
    std::string result;
    while (!at_end()) {
      const char c = take();
      if (c == quote) return result;
      if (c == '\\' && !at_end()) {
        append_escape(result);
      } else if (static_cast<unsigned char>(c) < 0x20) {
        line_ = first_line;
        fail("a control character or line end inside a quoted string");
      } else {
        result += c;
      }
    }
    line_ = first_line;
    fail("a quoted string is never closed");
  }

  void append_escape(std::string& result) {
    constexpr std::string_view names = "\"'\\/bfnrt";
    constexpr std::string_view meanings = "\"'\\/\b\f\n\r\t";
    const char c = take();
    if (c == 'u') {
      std::uint32_t code = parse_hex4();
      if (code >= 0xD800 && code < 0xDC00 && starts("\\u")) {
        at_ += 2;
        const std::uint32_t low = parse_hex4();
        const bool pair = low >= 0xDC00 && low < 0xE000;
        code = pair ? 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00) : 0xFFFD;
      }
      deepspeed::append_utf8(result, code);
      return;
    }
    const std::size_t which = names.find(c);
    if (which == std::string_view::npos) fail("an unknown escape sequence in a quoted string");
    result += meanings[which];
  }

  std::uint32_t parse_hex4() {
    std::uint32_t code = 0;
    const char* begin = text_.data() + at_;
    const char* end = begin + std::min<std::size_t>(4, text_.size() - at_);
    const auto [stop, status] = std::from_chars(begin, end, code, 16);
    if (status != std::errc{} || stop != begin + 4) fail("\\u needs four hexadecimal digits");
    at_ += 4;
    return code;
  }

  // Removes from each line the indentation of the opening quotes.
  std::string parse_multiline() {
    const int first_line = line_;
    const std::size_t indent = at_ - line_start_;
    const auto skip_indent = [&](std::size_t most) {
      for (; most > 0 && (peek() == ' ' || peek() == '\t'); --most) take();
    };
    at_ += 3;
    skip_indent(std::string::npos);
    if (peek() == '\n') {
      take();
      skip_indent(indent);
    }
    std::string result;
    while (!at_end()) {
      if (starts("'''")) {
        at_ += 3;
        if (!result.empty() && result.back() == '\n') result.pop_back();
        return result;
      }
      const char c = take();
      result += c;
      if (c == '\n') skip_indent(indent);
    }
    line_ = first_line;
    fail("a ''' string is never closed");
  }

  bool ends_word() const {
    return std::string_view(",}]#").find(peek()) != std::string_view::npos || starts("//") ||
           starts("/*");
  }

  // Parses true, false, null or a number if a comma, a bracket, a comment or the line end follows;
  // otherwise the remainder of the line as text.
  void parse_quoteless(Value& value) {
    if (at_end() || punctuators.find(peek()) != std::string_view::npos) fail("a value is missing");
    const std::size_t begin = at_;
    while (!at_end() && peek() != '\n' && !ends_word()) ++at_;
    const std::string_view word = trim(std::string_view(text_).substr(begin, at_ - begin));
    if (word == "null") return;
    value.text = word;
    if (word == "true" || word == "false") {
      value.kind = Kind::boolean;
      value.boolean = word == "true";
    } else if (deepspeed::is_python_number(word)) {
      const auto number = deepspeed::python_number(word);
      if (!number)
        fail(fmt::format("'{}' is out of the range of a 64-bit floating-point number", word));
      value.kind = Kind::number;
      value.number = number->real;
      value.whole = number->whole;
    } else {
      value.kind = Kind::string;
      at_ = std::min(text_.find('\n', at_), text_.size());
      value.text = trim(std::string_view(text_).substr(begin, at_ - begin));
    }
  }

  std::string text_;
  const std::string& file_;
  std::size_t at_ = 0;
  std::size_t line_start_ = 0;
  int line_ = 1;
};

}  // namespace

const Value* Value::find(std::string_view key) const {
  for (const Member& member : members)
    if (member.key == key) return &member.value;
  return nullptr;
}

Value parse(std::string_view text, const std::string& file) {
  return Parser(deepspeed::python_text(text, file), file).root();
}

}  // namespace lambcast::hjson
