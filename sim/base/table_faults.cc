#include "sim/base/table_faults.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/base/printable.h"

namespace lambcast {
namespace {

std::string last_word(const std::string& path) { return path.substr(path.rfind('.') + 1); }

// Returns the keys of a description that a key at the wrong place may mean, by their last word:
// nic.bandwidth for bandwidth. `is_unlike` allows a slip in its spelling.
std::vector<std::string> misplaced(std::string_view key, bool is_unlike,
                                   const std::vector<std::string>& keys) {
  std::vector<std::string> words, found;
  for (const std::string& known : keys) words.push_back(last_word(known));
  const bool is_word = std::ranges::find(words, key) != words.end();
  const std::string meant =
      is_word ? std::string(key) : (is_unlike ? closest(key, words) : std::string());
  for (const std::string& known : keys)
    if (!meant.empty() && last_word(known) == meant) found.push_back(known);
  return found;
}

// Returns the part of a flag's key that the description lacks: "cluster." of "--set
// cluster.nic.bandwidth", whose key is nic.bandwidth.
std::string_view prefix_of_flag(const Where& place) {
  constexpr std::string_view flag = "--set ";
  const std::string_view origin = place.file;
  if (!origin.starts_with(flag) || !origin.ends_with(place.key)) return {};
  return origin.substr(flag.size(), origin.size() - flag.size() - place.key.size());
}

}  // namespace

void refuse_control_characters(std::string text, const Where& where) {
  if (std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; })) return;
  std::erase_if(text, [](char c) { return c == '\n' || c == '\r' || c == '\t'; });
  if (printable(text) != text)
    fail_input(where, fmt::format("'{}' has control characters", printable(text)),
               "letters, signs, spaces and line ends");
}

void fail_unread_key(const Where& where, std::string_view key, std::span<const std::string> allowed,
                     const std::vector<std::string>& all) {
  const std::vector<std::string> elsewhere = misplaced(key, closest(key, allowed).empty(), all);
  if (elsewhere.empty()) fail_unknown(where, "key", key, allowed);
  const std::string_view prefix = prefix_of_flag(where);
  fail_input(where, fmt::format("unknown key '{}', did you mean {}'{}{}'?", key,
                                elsewhere.size() > 1 ? "one of " : "", prefix,
                                fmt::join(elsewhere, fmt::format("', '{}", prefix))));
}

}  // namespace lambcast
