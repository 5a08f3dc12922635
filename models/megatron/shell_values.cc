#include "models/megatron/shell_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <utility>

#include "sim/base/whole_number.h"

namespace lambcast::megatron {
namespace {

constexpr char missing_mark = '\x01';
constexpr std::size_t longest_value = 1 << 18;  // characters of a value
constexpr std::size_t most_items = 10'000;      // items of an array

std::string cut(std::string text) {
  if (text.size() > longest_value) text.resize(longest_value);
  return text;
}

// If one of two values begins with the other, returns the longer one with marks on the added part;
// else nothing.
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

std::string with_names(std::string text) {
  for (std::string name = missing_name(text); !name.empty(); name = missing_name(text)) {
    const std::string mark = without_value(name);
    text.replace(text.find(mark), mark.size(), "$" + name);
  }
  return text;
}

ShellValues::ShellValues(Variables given) : given_(std::move(given)) {
  for (const auto& [name, text] : given_) {
    values_[name] = {{text}};
    exported_.insert(name);
  }
}

void ShellValues::assign(const std::string& name, ShellValue value, bool append) {
  if (given_.contains(name)) return;
  if (all_exported_) exported_.insert(name);
  const bool output = !value.list && value.items.front() == without_value(command_output);
  if (output) value.items.front() = without_value(name);
  ShellValue& old = slot(name);
  for (const std::string& item : value.items) written_ += item.size() + field_cost;
  if (append && !old.items.empty()) written_ += old.items.front().size();
  const bool whole = value.items.size() == 1 && whole_number(value.items.front());
  if (integers_.contains(name) && (append || !whole)) {
    old = {{without_value(name)}};
    reasons_[name] = "'declare -i'";
  } else if (!append && old.list && !value.list && !old.items.empty()) {
    old.items.front() =
        std::move(value.items.front());  // the shell changes the first item of an array this way
  } else if (!append || old.items.empty()) {
    old = std::move(value);
  } else if (value.list) {
    old.items.insert(old.items.end(), value.items.begin(), value.items.end());
    old.list = true;
  } else {
    old.items.front() = cut(old.items.front() + value.items.front());
  }
}

void ShellValues::assign_item(const std::string& name, std::string_view index, std::string text,
                              bool append) {
  if (given_.contains(name)) return;
  if (is_associative(name)) {
    const std::string key = whole(index);
    if (!missing_name(key).empty()) return forget(name, "an item whose key has no value");
    return assign(fmt::format("{}[{}]", name, key), {{std::move(text)}}, append);
  }
  const std::string number = calculated(index);
  std::size_t place = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), place);
  const bool good = error == std::errc() && end == number.data() + number.size();
  const std::size_t size = value_of(name).value_or(ShellValue{}).items.size();
  if (!good || place > std::min(size, most_items)) return forget(name, "an array with gaps");
  ShellValue& value = slot(name);
  value.list = true;
  if (place == size) value.items.emplace_back();
  value.items[place] = append ? cut(value.items[place] + text) : std::move(text);
}

void ShellValues::make_associative(const std::string& name) {
  associative_.insert(name);
  forget_items(name);
}

void ShellValues::forget_items(const std::string& name) {
  const std::string start = name + "[";
  std::vector<std::string> items;
  for (auto item = values_.lower_bound(start);
       item != values_.end() && item->first.starts_with(start); ++item)
    items.push_back(item->first);
  for (const std::string& item : items) slot(item) = {{without_value(name)}};
}

void ShellValues::unset(const std::string& name) {
  forget_items(name);
  if (!given_.contains(name)) slot(name) = {};
}

void ShellValues::forget(const std::string& name, const std::string& reason) {
  if (given_.contains(name)) return;
  forget_items(name);
  slot(name) = {{without_value(name)}};
  reasons_[name] = reason;
}

void ShellValues::forget_all(const std::string& reason) {
  std::vector<std::string> names;
  for (const auto& [name, value] : values_)
    if (!whole_number(name)) names.push_back(name);  // positional parameters stay
  for (const std::string& name : names) forget(name, reason);
}

void ShellValues::make_exported(const std::string& name, bool exported) {
  if (exported)
    exported_.insert(name);
  else
    exported_.erase(name);
}

void ShellValues::keep_exported() {
  std::vector<std::string> names;
  for (const auto& [name, value] : values_)
    if (whole_number(name) || !exported_.contains(name)) names.push_back(name);
  for (const std::string& name : names)
    whole_number(name) ? restore(name, std::nullopt) : void(slot(name) = {});
}

void ShellValues::leave_function() {
  for (const auto& [name, former] : locals_.back()) restore(name, former);
  locals_.pop_back();
}

void ShellValues::make_local(const std::string& name) {
  if (locals_.empty()) return;
  locals_.back().try_emplace(name, value_of(name));
  unset(name);
}

std::vector<std::string> ShellValues::positional() const {
  std::vector<std::string> words;
  for (int i = 1; values_.contains(std::to_string(i)); ++i)
    words.push_back(text_of(std::to_string(i)));
  return words;
}

void ShellValues::set_positional(const std::vector<std::string>& words) {
  for (int i = 1; values_.contains(std::to_string(i)); ++i)
    restore(std::to_string(i), std::nullopt);
  for (std::size_t i = 0; i < words.size(); ++i) bind(std::to_string(i + 1), words[i]);
}

void ShellValues::keep_scope() {
  Changes formers = std::move(scopes_.back());
  scopes_.pop_back();
  if (!scopes_.empty()) scopes_.back().merge(formers);
}

ShellValues::Changes ShellValues::undo_scope() {
  const Changes formers = std::move(scopes_.back());
  scopes_.pop_back();
  Changes finals;
  for (const auto& [name, former] : formers) {
    finals.emplace(name, value_of(name));
    former ? void(values_[name] = *former) : void(values_.erase(name));
  }
  return finals;
}

void ShellValues::redo(const Changes& finals) {
  for (const auto& [name, value] : finals) restore(name, value);
}

void ShellValues::merge_scope(const Changes& other) {
  // Names that were changed only on the other side are recorded too.
  for (const auto& [name, value] : other) record(name);
  const Changes formers = scopes_.back();
  keep_scope();
  for (const auto& [name, former] : formers) {
    const auto changed = other.find(name);
    const auto here = value_of(name), there = changed == other.end() ? former : changed->second;
    if (here == there) continue;
    const auto longer = here && there ? extended(*here, *there) : std::nullopt;
    restore(name, longer ? *longer : ShellValue{{without_value(name)}});
  }
}

ShellValue& ShellValues::slot(const std::string& name) {
  record(name);
  return values_[name];
}

void ShellValues::restore(const std::string& name, const std::optional<ShellValue>& value) {
  record(name);
  if (value)
    values_[name] = *value;
  else
    values_.erase(name);
}

void ShellValues::record(const std::string& name) {
  if (!scopes_.empty() && !scopes_.back().contains(name))
    scopes_.back().emplace(name, value_of(name));
}

std::optional<ShellValue> ShellValues::value_of(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::nullopt : std::optional(found->second);
}

std::string ShellValues::text_of(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return without_value(name);
  return found->second.items.empty() ? "" : found->second.items.front();
}

}  // namespace lambcast::megatron
