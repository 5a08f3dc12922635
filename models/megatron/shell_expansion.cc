#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "models/megatron/shell_arithmetic.h"
#include "models/megatron/shell_lexer.h"
#include "models/megatron/shell_values.h"
#include "sim/base/whole_number.h"

namespace lambcast::megatron {
namespace {

constexpr std::string_view blanks = " \t\r\n";
constexpr std::size_t most_text = 1 << 18;     // characters of a word
constexpr std::size_t most_trimmed = 1 << 10;  // characters of a text from which a part is removed

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

// Replaces the text FROM by TO for "/FROM/TO" or "//FROM/TO"; returns nothing for patterns.
std::optional<std::string> replaced(const std::string& text, std::string_view rest) {
  const bool every = rest.starts_with("//");
  rest.remove_prefix(every ? 2 : 1);
  const std::size_t middle = rest.find('/');
  const std::string_view from = rest.substr(0, middle);
  const std::string_view to = middle == rest.npos ? "" : rest.substr(middle + 1);
  if (from.empty()) return text;
  if (from.find_first_of("*?[#%\\") != from.npos) return std::nullopt;
  std::string result;
  std::size_t begin = 0;
  for (std::size_t at = text.find(from); at != text.npos; at = text.find(from, begin)) {
    result.append(text, begin, at - begin).append(to);
    begin = at + from.size();
    if (!every || result.size() > most_text) break;
  }
  return result.append(text, begin);
}

bool lacks_value(const std::vector<std::string>& items) {
  return std::ranges::any_of(items,
                             [](const std::string& item) { return !missing_name(item).empty(); });
}

}  // namespace

// Builds the fields that a word expands to.
class ShellValues::Expansion {
 public:
  Expansion(ShellValues& values, bool split) : values_(values), split_(split) {}

  std::vector<std::string> word(std::string_view source) {
    const bool plain = source.find_first_of("$'\"\\`") == source.npos;
    if (plain && !source.empty()) return {std::string(source)};
    for (std::size_t at = 0; at < source.size();) {
      const std::size_t end = std::min(after_unit(source, at), source.size());
      const std::string_view part = source.substr(at, end - at);
      at = part == "$" ? behind_dollar(source, end) : end;
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
      // Without items, "$@" and "${A[@]}" expand to no field.
      open_ = open_ || !(source.ends_with("@]}\"") || source == "\"$@\"" || source == "\"${@}\"");
      inside_quotes(source.substr(1, source.size() - 2));
    } else if (c == '\\') {
      if (source.substr(1) != "\n") append(source.substr(1));
    } else if (source.size() > 1 || c == '`') {
      substitution(source, split_);
    } else {
      append(source);
    }
  }

  // Handles $'text': without escapes it equals 'text'; with escapes it has no value.
  std::size_t behind_dollar(std::string_view source, std::size_t at) {
    if (at == source.size() || (source[at] != '\'' && source[at] != '"'))
      return name_behind(source, at, split_);
    const std::size_t end = std::min(after_unit(source, at), source.size());
    const std::string_view quoted = source.substr(at, end - at);
    if (quoted.find('\\') == quoted.npos)
      unit(quoted);
    else
      append(without_value(command_output));
    return end;
  }

  // Expands a plain $NAME, $1 or $@ after its dollar sign.
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

  // Expands ${...}, $((...)), $(...), $# or `...`.
  void substitution(std::string_view source, bool split) {
    if (source == "$#") return add(values_.parameter("#"), split);
    if (source.starts_with("${"))
      return add(values_.parameter(source.substr(2, source.size() - 3)), split);
    if (source.starts_with("$((") && source.ends_with("))"))
      return append(values_.calculated(source.substr(3, source.size() - 5)));
    if (const auto text = written_text(source)) return add({*text}, split);
    append(without_value(command_output));
  }

  // Returns the output of $(cat <<EOF ...), without its last line ends.
  std::optional<std::string> written_text(std::string_view source) {
    if (!source.starts_with("$(")) return std::nullopt;
    source = source.substr(2, source.size() - 3);
    std::size_t at = source.find("<<");
    const std::size_t row = source.find('\n');
    if (at == source.npos || row == source.npos || at > row) return std::nullopt;
    HereDocument document;
    document.tabs = source.substr(at).starts_with("<<-");
    const auto trimmed_of = [](std::string_view text) {
      const std::size_t first = std::min(text.find_first_not_of(blanks), text.size());
      return text.substr(first, text.find_last_not_of(blanks) + 1 - first);
    };
    if (trimmed_of(source.substr(0, at)) != "cat") return std::nullopt;
    at += document.tabs ? 3 : 2;
    document.delimiter = trimmed_of(source.substr(at, row - at));
    std::string content;
    at = row + 1;
    if (!read_here_document(source, at, document, content) ||
        !trimmed_of(source.substr(at)).empty())
      return std::nullopt;
    if (document.delimiter.find_first_of("'\"\\") == std::string::npos)
      content = Expansion(values_, false).double_quoted(content);
    content.erase(content.find_last_not_of('\n') + 1);
    return content;
  }

  void add(std::vector<std::string> items, bool split) {
    if (split && !items.empty() && values_.splits_otherwise()) items = {without_value("IFS")};
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

std::vector<std::string> ShellValues::fields(std::string_view source) {
  std::vector<std::string> all;
  for (const std::string& word : brace_expanded(source))
    for (std::string& field : Expansion(*this, true).word(word)) {
      written_ += field.size() + field_cost;
      all.push_back(std::move(field));
    }
  return all;
}

std::string ShellValues::whole(std::string_view source) {
  std::string text = fmt::format("{}", fmt::join(Expansion(*this, false).word(source), " "));
  written_ += text.size() + field_cost;
  return text;
}

std::string ShellValues::quoted(std::string_view source) {
  std::string text = Expansion(*this, false).double_quoted(source);
  written_ += text.size() + field_cost;
  return text;
}

std::string ShellValues::calculated(std::string_view source) {
  const std::string text = quoted(source);
  if (const std::string name = missing_name(text); !name.empty()) return without_value(name);
  std::string missing;
  const ArithmeticNames names{[&](const std::string& name) -> std::optional<std::int64_t> {
                                const std::string value = text_of(name);
                                if (value.empty()) return 0;
                                if (missing.empty()) missing = missing_name(value);
                                const bool octal = value.size() > 1 && value[0] == '0';
                                return octal ? std::nullopt : whole_number(value);
                              },
                              [&](const std::string& name, std::int64_t value) {
                                assign(name, {{std::to_string(value)}}, false);
                              }};
  if (text.find_first_not_of(" \t\n") == text.npos) return "0";
  if (const auto value = arithmetic(text, names)) return std::to_string(*value);
  forget_assigned(text);
  return without_value(missing.empty() ? command_output : std::string_view(missing));
}

// Removes the values of names in an expression that was not evaluated, if the expression may assign
// to them.
void ShellValues::forget_assigned(std::string_view text) {
  bool assigns = text.find("++") != text.npos || text.find("--") != text.npos;
  for (std::size_t at = text.find('='); at != text.npos; at = text.find('=', at + 1)) {
    const char before = at > 0 ? text[at - 1] : ' ';
    const bool compares = std::string_view("=!<>").find(before) != text.npos;
    assigns = assigns || (!compares && !text.substr(at + 1).starts_with("=")) ||
              text.substr(0, at).ends_with("<<") || text.substr(0, at).ends_with(">>");
  }
  for (std::size_t at = 0; assigns && at < text.size();) {
    const std::size_t length = variable_length(text.substr(at));
    if (length > 0) forget(std::string(text.substr(at, length)), "arithmetic");
    at += std::max<std::size_t>(length, 1);
  }
}

bool ShellValues::splits_otherwise() const {
  const auto found = values_.find("IFS");
  return found != values_.end() && !found->second.items.empty();
}

std::string ShellValues::length_of(std::string_view name) {
  if (name.empty() || name == "@" || name == "*") return std::to_string(positional().size());
  std::size_t length = variable_length(name);
  if (length == 0) length = std::min(name.find_first_not_of("0123456789"), name.size());
  const std::string key(name.substr(0, length));
  const auto found = values_.find(key);
  if (found == values_.end()) return without_value(key);
  const std::string_view rest = name.substr(length);
  if (rest == "[@]" || rest == "[*]")
    return lacks_value(found->second.items) ? without_value(key)
                                            : std::to_string(found->second.items.size());
  if (!rest.empty() || lacks_value({text_of(key)})) return without_value(key);
  return std::to_string(text_of(key).size());
}

// Returns the values of the text between ${ and }.
std::vector<std::string> ShellValues::parameter(std::string_view inside) {
  if (inside.starts_with("#")) return {length_of(inside.substr(1))};
  if (inside == "@") return positional();
  if (inside == "*") return {fmt::format("{}", fmt::join(positional(), " "))};
  const bool indirect = inside.starts_with("!") && variable_length(inside.substr(1)) > 0;
  if (indirect) inside.remove_prefix(1);
  std::size_t length = variable_length(inside);
  if (length == 0) length = std::min(inside.find_first_not_of("0123456789"), inside.size());
  if (length == 0) length = std::min<std::size_t>(1, inside.size());
  std::string name(inside.substr(0, length));
  const std::string_view rest = inside.substr(length);
  if (indirect) {
    const std::string target = text_of(name);
    if (target.empty() || variable_length(target) != target.size() || rest.starts_with("["))
      return {without_value(name)};
    name = target;
  }
  if (rest.empty()) return {text_of(name)};
  return rest.starts_with("[") ? element(name, rest) : otherwise(name, rest);
}

// Expands ${NAME[key]} of an associative array. The order of its items is not modelled.
std::vector<std::string> ShellValues::item_of(const std::string& name, std::string_view rest) {
  const bool one = rest.ends_with(']') && rest != "[@]" && rest != "[*]";
  const std::string key = one ? whole(rest.substr(1, rest.size() - 2)) : without_value(name);
  if (const std::string missing = missing_name(key); !missing.empty())
    return {without_value(missing)};
  const auto found = values_.find(fmt::format("{}[{}]", name, key));
  if (found == values_.end() || found->second.items.empty()) return {without_value(name)};
  return {found->second.items.front()};
}

// Expands ${NAME[@]}, ${NAME[*]}, ${NAME[@]:first:count} and ${NAME[index]}.
std::vector<std::string> ShellValues::element(const std::string& name, std::string_view rest) {
  if (is_associative(name) && !given_.contains(name)) return item_of(name, rest);
  const auto found = values_.find(name);
  if (found == values_.end()) return {without_value(name)};
  const auto& items = found->second.items;
  if (rest == "[@]") return items;
  if (rest == "[*]") return {fmt::format("{}", fmt::join(items, " "))};
  if (rest.starts_with("[@]:") && !lacks_value(items)) {
    const std::string_view range = rest.substr(4);
    const std::size_t colon = range.find(':');
    const auto first = whole_number(calculated(range.substr(0, colon)));
    const auto count = colon == range.npos ? std::optional<std::int64_t>(items.size())
                                           : whole_number(calculated(range.substr(colon + 1)));
    const auto size = static_cast<std::int64_t>(items.size());
    if (!first || !count || *first < 0 || *count < 0) return {without_value(name)};
    const auto begin = items.begin() + std::min(*first, size);
    return {begin, begin + std::min<std::int64_t>(*count, items.end() - begin)};
  }
  auto index = whole_number(calculated(rest.substr(1, rest.size() - 2)));
  const auto size = static_cast<std::int64_t>(items.size());
  if (index && *index < 0) index = *index + size;
  if (!index || *index < 0 || rest.back() != ']' || rest.find(']') != rest.size() - 1)
    return {without_value(name)};
  return {*index < size ? items[static_cast<std::size_t>(*index)] : ""};
}

// Expands ${NAME:-word}, ${NAME:=word}, ${NAME:+word} and ${NAME:?word}, with and without the
// colon.
std::vector<std::string> ShellValues::otherwise(const std::string& name, std::string_view rest) {
  const bool colon = rest.starts_with(":");
  const char kind = rest.size() > (colon ? 1 : 0) ? rest[colon ? 1 : 0] : '\0';
  if (colon && std::string_view("-=+?").find(kind) == rest.npos)
    return part_of(name, rest.substr(1));
  if (std::string_view("-=+?").find(kind) == rest.npos || kind == '\0') return edited(name, rest);
  const auto found = values_.find(name);
  const bool given = found != values_.end();
  const bool set = given && !found->second.items.empty() && !(colon && text_of(name).empty());
  const std::string_view word = rest.substr(colon ? 2 : 1);
  if (kind == '+' && given && lacks_value({text_of(name)})) return {text_of(name)};
  if (kind == '+') return {set ? whole(word) : ""};
  if (set) return {text_of(name)};
  if (kind == '?') return {without_value(name)};
  const std::string value = whole(word);
  if (kind == '=') assign(name, {{value}}, false);
  return {value};
}

// Expands ${NAME:first} and ${NAME:first:count}.
std::vector<std::string> ShellValues::part_of(const std::string& name, std::string_view range) {
  const std::string text = text_of(name);
  const std::size_t colon = range.find(':');
  const auto size = static_cast<std::int64_t>(text.size());
  auto first = whole_number(calculated(range.substr(0, colon)));
  const auto count = colon == range.npos ? std::optional<std::int64_t>(size)
                                         : whole_number(calculated(range.substr(colon + 1)));
  if (first && *first < 0) first = *first + size;
  if (lacks_value({text}) || !first || !count || *first < 0 || *count < 0)
    return {lacks_value({text}) ? text : without_value(name)};
  const auto begin = static_cast<std::size_t>(std::min(*first, size));
  return {text.substr(begin, static_cast<std::size_t>(*count))};
}

// Removes prefixes and suffixes, replaces parts and changes case.
std::vector<std::string> ShellValues::edited(const std::string& name, std::string_view rest) {
  const std::string text = text_of(name);
  if (!missing_name(text).empty()) return {text};
  const bool twice = rest.size() > 1 && rest[0] == rest[1];
  if (rest.starts_with("%") || rest.starts_with("#")) {
    const std::string pattern = whole(rest.substr(twice ? 2 : 1));
    const bool read = pattern.find_first_of("[\\") == pattern.npos && text.size() <= most_trimmed;
    if (lacks_value({pattern}) || !read)
      return {lacks_value({pattern}) ? pattern : without_value(name)};
    return {trimmed(text, pattern, rest[0] == '#', twice)};
  }
  if (rest.starts_with("/")) {
    const std::string parts = whole(rest);
    return {lacks_value({parts}) ? parts : replaced(text, parts).value_or(without_value(name))};
  }
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
