// Typed reading of one object of a configuration file. Every wrong type is an Error that names
// file, line and dotted key; "auto" becomes a finding.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/deepspeed/hjson.h"
#include "models/finding.h"
#include "sim/base/error.h"

namespace lambcast::deepspeed {

// A value, initially DeepSpeed's default, and its line if the file sets it.
template <typename T>
struct Setting {
  T value{};
  bool given = false;  // false: absent or "auto" in the file, `value` is the default
  int line = 0;        // line in the file, if given
};

struct Section {
  const hjson::Value& object;
  std::string path;  // "optimizer.params"; empty for the root
  const std::string& file;
  std::vector<Finding>& findings;
};

Where where_of(const Section& section, std::string_view key, int line);

void add(const Section& section, Severity severity, std::string code, std::string_view key,
         int line, std::string_view sentence);

// Returns the section under `key`, or nothing if it is absent or null. Throws Error if it is not an
// object.
std::optional<Section> subsection(const Section& section, std::string_view key);

// Each read() leaves `setting` unchanged if the key is absent. For "auto" it adds the finding
// `auto-value`, since Hugging Face replaces that word before DeepSpeed reads the file. A boolean
// may be written as 0 or 1, as in Python; null counts as absent if None is DeepSpeed's default.
// Numbers outside [low, high] are refused.
using Whole = std::int64_t;
inline constexpr Whole whole_max = std::numeric_limits<Whole>::max();
inline constexpr double real_max = std::numeric_limits<double>::max();

void read(const Section& section, std::string_view key, Setting<bool>& setting);
void read(const Section& section, std::string_view key, Setting<std::optional<bool>>& setting);
void read(const Section& section, std::string_view key, Setting<Whole>& setting, Whole low,
          Whole high = whole_max);
void read(const Section& section, std::string_view key, Setting<std::optional<Whole>>& setting);
void read(const Section& section, std::string_view key, Setting<double>& setting,
          double low = -real_max, double high = real_max);
void read(const Section& section, std::string_view key, Setting<std::array<double, 2>>& setting,
          double low, double high);
void read(const Section& section, std::string_view key,
          Setting<std::optional<std::string>>& setting);
void read(const Section& section, std::string_view key, Setting<std::vector<Whole>>& setting,
          Whole low);

// Adds a finding `unknown-key` with a suggestion for each key that is not in `known`.
void find_unknown_keys(const Section& section, std::span<const std::string> known);
// Throws Error (usage) with the message of such a finding for the first unknown key. Used for
// sections in which DeepSpeed refuses unknown keys too.
void refuse_unknown_keys(const Section& section, std::span<const std::string> known);

}  // namespace lambcast::deepspeed
