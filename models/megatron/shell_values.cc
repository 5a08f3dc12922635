#include "models/megatron/shell_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <sstream>
#include <utility>

#include "models/megatron/shell_arithmetic.h"
#include "models/megatron/shell_lexer.h"

namespace lambcast::megatron {
namespace {

constexpr char missing_mark = '\x01';
constexpr std::string_view blanks = " \t\r\n";
constexpr std::size_t most_text = 1 << 20;  // characters of a value

std::string cut(std::string text) {
  if (text.size() > most_text) text.resize(most_text);
  return text;
}

// Removes the shortest or longest prefix or suffix that matches `pattern`.
std::string trimmed(const std::string& text, std::string_view pattern, bool prefix, bool longest) {
  for (std::size_t i = 0; i <= text.size(); ++i) {
    const std::size_t length = longest ? text.size() - i : i;
    const std::string_view all = text;
    const auto part = prefix ? all.substr(0, length) : all.substr(all.size() - length);
    if (matches_pattern(part, pattern))
      return std::string(prefix ? all.substr(length) : all.substr(0, all.size() - length));
  }
  return text;
}

std::string replaced(std::string text, std::string_view rest) {
  const bool every = rest.starts_with("//");
  rest.remove_prefix(every ? 2 : 1);
  const std::size_t middle = rest.find('/');
  const std::string_view from = rest.substr(0, middle);
  const std::string_view to = middle == rest.npos ? "" : rest.substr(middle + 1);
  if (from.empty()) return text;
  for (std::size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
    if (!every || text.size() > most_text) break;
  }
  return text;
}

// The longer of two values that begin alike, with marks on what it adds; nothing for others.
std::optional<ShellValue> extended(const ShellValue& a, const ShellValue& b) {
  if (a.list != b.list || (!a.list && (a.items.empty() || b.items.empty()))) return std::nullopt;
  const bool a_longer = a.list ? a.items.size() > b.items.size() : a.items[0] > b.items[0];
  const ShellValue &brief = a_longer ? b : a, &full = a_longer ? a : b;
  ShellValue marked = brief;
  if (a.list) {
    if (!std::equal(brief.items.begin(), brief.items.end(), full.items.begin())) return {};
    for (std::size_t i = brief.items.size(); i < full.items.size(); ++i)
      marked.items.push_back(branch_mark + full.items[i]);
    return marked;
  }
  if (brief.items[0].empty() || !full.items[0].starts_with(brief.items[0] + " ")) return {};
  std::istringstream added(full.items[0].substr(brief.items[0].size()));
  for (std::string word; added >> word;) marked.items[0] += std::string(" ") + branch_mark + word;
  return marked;
}

}  // namespace

std::string without_value(std::string_view name) {
  return fmt::format("{}{}{}", missing_mark, name, missing_mark);
}

std::string missing_name(std::string_view text) {
  const std::size_t begin = text.find(missing_mark);
  if (begin == text.npos) return {};
  const std::size_t end = std::min(text.find(missing_mark, begin + 1), text.size());
  return std::string(text.substr(begin + 1, end - begin - 1));
}

// The fields that a word becomes.
class ShellValues::Expansion {
 public:
  Expansion(ShellValues& values, bool split) : values_(values), split_(split) {}

  std::vector<std::string> word(std::string_view source) {
    for (std::size_t at = 0; at < source.size();) {
      const std::size_t end = std::min(after_unit(source, at), source.size());
      const std::string_view part = source.substr(at, end - at);
      at = part == "$" ? name_behind(source, end, split_) : end;
      if (part != "$") unit(part);
    }
    finish();
    return std::move(fields_);
  }

  std::string double_quoted(std::string_view source) {
    inside_quotes(source);
    return std::move(text_);
  }

 private:
  void unit(std::string_view source) {
    const char c = source.front();
    if (c == '\'') {
      append(source.substr(1, source.size() - 2));
    } else if (c == '"') {
      open_ = true;
      inside_quotes(source.substr(1, source.size() - 2));
    } else if (c == '\\') {
      if (source.substr(1) != "\n") append(source.substr(1));
    } else if (source.size() > 1 || c == '`') {
      substitution(source, split_);
    } else {
      append(source);
    }
  }

  // A plain $NAME, $1 or $@ after its dollar sign.
  std::size_t name_behind(std::string_view source, std::size_t at, bool split) {
    std::size_t length = variable_length(source.substr(at));
    constexpr std::string_view special = "0123456789@*?!";
    if (length == 0 && at < source.size() && special.find(source[at]) != special.npos) length = 1;
    if (length == 0) append("$");
    if (length > 0) add(values_.parameter(source.substr(at, length)), split);
    return at + length;
  }

  void inside_quotes(std::string_view source) {
    for (std::size_t at = 0; at < source.size();) {
      const char c = source[at];
      const char next = at + 1 < source.size() ? source[at + 1] : '\0';
      if (c == '\\' && std::string_view("$`\"\\\n").find(next) != source.npos && next != '\0') {
        if (next != '\n') append(source.substr(at + 1, 1));
        at += 2;
      } else if (c == '$' || c == '`') {
        const std::size_t end = std::min(after_unit(source, at), source.size());
        if (end - at > 1) substitution(source.substr(at, end - at), false);
        at = end - at > 1 ? end : name_behind(source, end, false);
      } else {
        append(source.substr(at++, 1));
      }
    }
  }

  // ${...}, $((...)), $(...), $# or `...`.
  void substitution(std::string_view source, bool split) {
    if (source == "$#") return add(values_.parameter("#"), split);
    if (source.starts_with("${"))
      return add(values_.parameter(source.substr(2, source.size() - 3)), split);
    if (source.starts_with("$((") && source.ends_with("))"))
      return append(values_.calculated(source.substr(3, source.size() - 5)));
    append(without_value(command_output));
  }

  void add(const std::vector<std::string>& items, bool split) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i > 0) split_ ? finish() : append(" ");
      for (const char c : items[i]) {
        if (split && blanks.find(c) != blanks.npos)
          finish();
        else
          append({&c, 1});
      }
    }
  }

  void append(std::string_view text) {
    open_ = true;
    if (text_.size() < most_text) text_ += text;
  }

  void finish() {
    if (open_) fields_.push_back(std::move(text_));
    text_.clear();
    open_ = false;
  }

  ShellValues& values_;
  bool split_, open_ = false;
  std::string text_;
  std::vector<std::string> fields_;
};

ShellValues::ShellValues(Variables given) : given_(std::move(given)) {
  for (const auto& [name, text] : given_) values_[name] = {{text}};
}

void ShellValues::assign(const std::string& name, ShellValue value, bool append) {
  if (given_.contains(name)) return;
  const bool output = !value.list && value.items.front() == without_value(command_output);
  if (output) value.items.front() = without_value(name);
  ShellValue& old = values_[name];
  if (!append || old.items.empty()) {
    old = std::move(value);
  } else if (value.list) {
    old.items.insert(old.items.end(), value.items.begin(), value.items.end());
    old.list = true;
  } else {
    old.items.front() = cut(old.items.front() + value.items.front());
  }
}

std::vector<std::string> ShellValues::fields(std::string_view source) {
  return Expansion(*this, true).word(source);
}

std::string ShellValues::whole(std::string_view source) {
  return fmt::format("{}", fmt::join(Expansion(*this, false).word(source), " "));
}

std::string ShellValues::quoted(std::string_view source) {
  return Expansion(*this, false).double_quoted(source);
}

std::vector<std::string> ShellValues::positional() const {
  std::vector<std::string> words;
  for (int i = 1; values_.contains(std::to_string(i)); ++i)
    words.push_back(text_of(std::to_string(i)));
  return words;
}

void ShellValues::set_positional(const std::vector<std::string>& words) {
  for (int i = 1; values_.contains(std::to_string(i)); ++i) values_.erase(std::to_string(i));
  for (std::size_t i = 0; i < words.size(); ++i) bind(std::to_string(i + 1), words[i]);
}

void ShellValues::merge(const State& other) {
  State merged = values_;
  for (const auto& [name, value] : other) merged.emplace(name, value);
  for (auto& [name, value] : merged) {
    const auto here = std::as_const(values_).find(name), there = other.find(name);
    const bool both = here != values_.end() && there != other.end();
    if (both && here->second == there->second) continue;
    const auto longer = both ? extended(here->second, there->second) : std::nullopt;
    value = longer ? *longer : ShellValue{{without_value(name)}};
  }
  values_ = std::move(merged);
}

std::string ShellValues::calculated(std::string_view source) {
  const std::string text = quoted(source);
  if (const std::string name = missing_name(text); !name.empty()) return without_value(name);
  std::string missing;
  const auto value_of = [&](const std::string& name) -> std::optional<std::int64_t> {
    const std::string of = text_of(name);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(of.data(), of.data() + of.size(), value);
    if (error == std::errc() && end == of.data() + of.size()) return value;
    if (missing.empty()) missing = missing_name(of);
    return std::nullopt;
  };
  if (const auto value = arithmetic(text, value_of)) return std::to_string(*value);
  return without_value(missing.empty() ? command_output : std::string_view(missing));
}

std::string ShellValues::text_of(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return without_value(name);
  return found->second.items.empty() ? "" : found->second.items.front();
}

std::string ShellValues::length_of(std::string_view name) {
  if (name.empty() || name == "@" || name == "*") return std::to_string(positional().size());
  const std::string key(name.substr(0, variable_length(name)));
  const auto found = values_.find(key);
  if (found == values_.end()) return without_value(key);
  const bool items = name.ends_with("[@]") || name.ends_with("[*]");
  return std::to_string(items ? found->second.items.size() : text_of(key).size());
}

// The values of what stands between ${ and }.
std::vector<std::string> ShellValues::parameter(std::string_view inside) {
  if (inside.starts_with("#")) return {length_of(inside.substr(1))};
  if (inside == "@") return positional();
  if (inside == "*") return {fmt::format("{}", fmt::join(positional(), " "))};
  std::size_t length = variable_length(inside);
  if (length == 0) length = std::min(inside.find_first_not_of("0123456789"), inside.size());
  if (length == 0) length = std::min<std::size_t>(1, inside.size());
  const std::string name(inside.substr(0, length));
  std::string_view rest = inside.substr(length);
  if (rest.empty()) return {text_of(name)};
  if (!rest.starts_with("[")) return otherwise(name, rest);
  const auto found = values_.find(name);
  if (found == values_.end()) return {without_value(name)};
  if (rest == "[@]") return found->second.items;
  if (rest == "[*]") return {fmt::format("{}", fmt::join(found->second.items, " "))};
  const std::string index = calculated(rest.substr(1, rest.size() - 2));
  std::size_t place = 0;
  const auto [end, error] = std::from_chars(index.data(), index.data() + index.size(), place);
  const auto& items = found->second.items;
  if (error != std::errc() || end != index.data() + index.size() || rest.back() != ']')
    return {without_value(name)};
  return {place < items.size() ? items[place] : ""};
}

// ${NAME:-word}, ${NAME:=word}, ${NAME:+word} and ${NAME:?word}, with and without the colon.
std::vector<std::string> ShellValues::otherwise(const std::string& name, std::string_view rest) {
  const bool colon = rest.starts_with(":");
  const char kind = rest.size() > (colon ? 1 : 0) ? rest[colon ? 1 : 0] : '\0';
  if (std::string_view("-=+?").find(kind) == rest.npos || kind == '\0') return edited(name, rest);
  const bool set = values_.contains(name) && !(colon && text_of(name).empty());
  const std::string_view word = rest.substr(colon ? 2 : 1);
  if (kind == '+') return {set ? whole(word) : ""};
  if (set) return {text_of(name)};
  if (kind == '?') return {without_value(name)};
  const std::string value = whole(word);
  if (kind == '=') assign(name, {{value}}, false);
  return {value};
}

// Removed prefixes and suffixes, replaced parts and changed case.
std::vector<std::string> ShellValues::edited(const std::string& name, std::string_view rest) {
  const std::string text = text_of(name);
  if (!missing_name(text).empty()) return {text};
  const bool twice = rest.size() > 1 && rest[0] == rest[1];
  if (rest.starts_with("%") || rest.starts_with("#"))
    return {trimmed(text, whole(rest.substr(twice ? 2 : 1)), rest[0] == '#', twice)};
  if (rest.starts_with("/")) return {replaced(text, whole(rest))};
  std::string changed = text;
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  const auto upper = [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; };
  if (rest == ",,")
    std::ranges::transform(changed, changed.begin(), lower);
  else if (rest == "^^")
    std::ranges::transform(changed, changed.begin(), upper);
  else
    return {without_value(name)};
  return {changed};
}

}  // namespace lambcast::megatron
