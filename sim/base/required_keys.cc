#include "sim/base/required_keys.h"

#include <fmt/format.h>

#include <algorithm>

namespace lambcast {
namespace {

// Returns the part of the message about a missing key, or an empty text if the key is present or
// not required. If the key that decides about it is absent, the text names the condition. Throws
// Error (usage) for a key of [node] that is present although its condition does not hold.
std::string missing_text(const Table& section, const RequiredKey& required) {
  const auto given = required.given.empty() ? std::nullopt : section.find_text(required.given);
  if (given && std::ranges::find(required.values, *given) == required.values.end()) {
    // Only [node] rejects such a key; in other sections it may be optional.
    if (required.section == "node" && section.has(required.key))
      fail_input(section.where(std::string(required.key)),
                 fmt::format("applies only if {} is {}", required.given,
                             fmt::join(required.values, " or ")));
    return {};
  }
  // Without `kind` a fabric is a single switch.
  if (!given && required.section == "fabric") return {};
  if (section.has(required.key)) return {};
  const std::string name = required.section.empty()
                               ? std::string(required.key)
                               : fmt::format("{}.{}", required.section, required.key);
  if (required.given.empty() || given) return name;
  return fmt::format("{} (if {} is {})", name, required.given, fmt::join(required.values, " or "));
}

}  // namespace

void refuse_missing_keys(const Table& root, const std::vector<RequiredKey>& required_keys,
                         std::string_view preset) {
  std::vector<std::string> missing;
  for (const RequiredKey& required : required_keys) {
    const Table section =
        required.section.empty() ? root : root.table(std::string(required.section));
    std::string text = missing_text(section, required);
    if (!text.empty()) missing.push_back(std::move(text));
  }
  if (missing.size() < 2) return;
  fail_input(root.where(),
             fmt::format("{} keys are missing: {}; lambcast presets show {} prints a description "
                         "that has them",
                         missing.size(), fmt::join(missing, ", "), preset));
}

}  // namespace lambcast
