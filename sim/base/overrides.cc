#include "sim/base/overrides.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "sim/base/units.h"

namespace lambcast {
namespace {

template <auto parse>
bool is_same_quantity(const std::string& said, const std::string& value) {
  try {
    return parse(said, Where{}) == parse(value, Where{});
  } catch (const Error&) {
    return false;
  }
}

bool is_same(std::string said, std::string value) {
  for (std::string* text : {&said, &value}) std::erase(*text, ' ');
  return said == value || is_same_quantity<parse_bandwidth>(said, value) ||
         is_same_quantity<parse_flop_rate>(said, value) ||
         is_same_quantity<parse_duration>(said, value) ||
         is_same_quantity<parse_bytes>(said, value);
}

// Returns the value of the key as words. Throws Error if it is neither a word nor a list of words.
std::vector<std::string> words_at(Table table, std::string_view key) {
  for (std::size_t dot = key.find('.'); dot != key.npos; dot = key.find('.')) {
    const std::string_view part = key.substr(0, dot);
    if (!table.has(part)) fail_input(table.where(part), "is missing");
    table = table.table(part);
    key.remove_prefix(dot + 1);
  }
  return table.words(key);
}

// Returns the elements of a TOML list, or the value itself.
std::vector<std::string> words_of(const std::string& value) {
  return value.starts_with('[') ? Table::parse("list = " + value, "").words("list")
                                : std::vector{value};
}

}  // namespace

bool says(const Table& table, const std::string& key, const std::string& value) {
  for (const std::string& place : {key + ".value", key}) {
    try {
      return std::ranges::equal(words_at(table, place), words_of(value), is_same);
    } catch (const Error&) {
      // The key is absent or its value is not a word; setting it reports the error.
    }
  }
  return false;
}

Overrides changes_of(const Table& table, const Overrides& overrides) {
  Overrides changes;
  for (const auto& [key, value] : overrides)
    if (!says(table, key, value)) changes.emplace_back(key, value);
  return changes;
}

Error blame_flags(const Error& error, const std::string& preset,
                  std::span<const std::string> flags) {
  std::string_view what = error.what();
  if (what.starts_with("--set ")) return error;
  if (!preset.empty() && what.starts_with(preset + ":")) what.remove_prefix(what.find(": ") + 2);
  return Error(error.code(), fmt::format("{}: {}", fmt::join(flags, ", "), what));
}

}  // namespace lambcast
