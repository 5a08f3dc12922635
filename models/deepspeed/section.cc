#include "models/deepspeed/section.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "models/unknown_keys.h"

namespace lambcast::deepspeed {
namespace {

using hjson::Kind;
using hjson::Value;

// Returns the value of `key`. Returns null if the key is absent, or if the value is "auto", which
// becomes a finding.
const Value* wanted(const Section& section, std::string_view key) {
  const Value* value = section.object.find(key);
  if (value == nullptr || value->kind != Kind::string || value->text != "auto") return value;
  add(section, Severity::warning, "auto-value", key, value->line,
      "\"auto\" is filled in by Hugging Face, not by DeepSpeed: give the value on the command "
      "line");
  return nullptr;
}

std::string written(const Value& value) {
  if (value.kind == Kind::string) return fmt::format("the text '{}'", value.text);
  if (value.kind == Kind::number) return fmt::format("'{}'", value.text);
  return std::string(name_of(value.kind));
}

[[noreturn]] void refuse(const Section& section, std::string_view key, const Value& value,
                         const std::string& expected) {
  std::string what = fmt::format("{} is not {}", written(value), expected);
  if (value.kind == Kind::string && value.text.ends_with(','))
    what += "; text without quotes runs to the end of its line";
  fail_input(where_of(section, key, value.line), what);
}

template <typename T>
std::string within(std::string_view what, T low, T high) {
  const bool bounded_below = low > std::numeric_limits<T>::lowest();
  const bool bounded_above = high < std::numeric_limits<T>::max();
  std::string text(what);
  if (bounded_below && bounded_above) return text + fmt::format(" from {} to {}", low, high);
  if (bounded_below) return text + fmt::format(" of at least {}", low);
  if (bounded_above) return text + fmt::format(" of at most {}", high);
  return text;
}

Whole whole_of(const Section& section, std::string_view key, const Value& value, Whole low,
               Whole high) {
  if (value.kind != Kind::number || !value.whole || *value.whole < low || *value.whole > high)
    refuse(section, key, value, within("a whole number", low, high));
  return *value.whole;
}

double real_of(const Section& section, std::string_view key, const Value& value, double low,
               double high) {
  if (value.kind != Kind::number || value.number < low || value.number > high)
    refuse(section, key, value, within("a number", low, high));
  return value.number;
}

bool boolean_of(const Section& section, std::string_view key, const Value& value) {
  if (value.kind == Kind::boolean) return value.boolean;
  if (value.kind == Kind::number && (value.whole == 0 || value.whole == 1))
    return *value.whole == 1;
  refuse(section, key, value, "true or false");
}

template <typename T>
void set(Setting<T>& setting, T value, int line) {
  setting = {std::move(value), true, line};
}

}  // namespace

Where where_of(const Section& section, std::string_view key, int line) {
  return {section.file, line,
          section.path.empty() ? std::string(key) : fmt::format("{}.{}", section.path, key)};
}

void add(const Section& section, Severity severity, std::string code, std::string_view key,
         int line, std::string_view sentence) {
  section.findings.push_back(
      {severity, std::move(code), describe(where_of(section, key, line), sentence)});
}

std::optional<Section> subsection(const Section& section, std::string_view key) {
  const Value* value = section.object.find(key);
  if (value == nullptr || value->kind == Kind::null) return std::nullopt;
  const Where where = where_of(section, key, value->line);
  if (value->kind != Kind::object) refuse(section, key, *value, "an object");
  return Section{*value, where.key, section.file, section.findings};
}

void read(const Section& section, std::string_view key, Setting<bool>& setting) {
  if (const Value* value = wanted(section, key))
    set(setting, boolean_of(section, key, *value), value->line);
}

void read(const Section& section, std::string_view key, Setting<std::optional<bool>>& setting) {
  const Value* value = wanted(section, key);
  if (value != nullptr && value->kind != Kind::null)
    set(setting, std::optional(boolean_of(section, key, *value)), value->line);
}

void read(const Section& section, std::string_view key, Setting<Whole>& setting, Whole low,
          Whole high) {
  if (const Value* value = wanted(section, key))
    set(setting, whole_of(section, key, *value, low, high), value->line);
}

void read(const Section& section, std::string_view key, Setting<std::optional<Whole>>& setting) {
  const Value* value = wanted(section, key);
  if (value != nullptr && value->kind != Kind::null) {
    const Whole any = std::numeric_limits<Whole>::lowest();
    set(setting, std::optional(whole_of(section, key, *value, any, whole_max)), value->line);
  }
}

void read(const Section& section, std::string_view key, Setting<double>& setting, double low,
          double high) {
  if (const Value* value = wanted(section, key))
    set(setting, real_of(section, key, *value, low, high), value->line);
}

void read(const Section& section, std::string_view key, Setting<std::array<double, 2>>& setting,
          double low, double high) {
  const Value* value = wanted(section, key);
  if (value == nullptr) return;
  if (value->kind != Kind::array || value->items.size() != 2)
    refuse(section, key, *value, "an array of two numbers");
  set(setting,
      {real_of(section, key, value->items[0], low, high),
       real_of(section, key, value->items[1], low, high)},
      value->line);
}

void read(const Section& section, std::string_view key,
          Setting<std::optional<std::string>>& setting) {
  const Value* value = wanted(section, key);
  if (value == nullptr || value->kind == Kind::null) return;
  if (value->kind != Kind::string) refuse(section, key, *value, "text");
  set(setting, std::optional(value->text), value->line);
}

void read(const Section& section, std::string_view key, Setting<std::vector<Whole>>& setting,
          Whole low) {
  const Value* value = wanted(section, key);
  if (value == nullptr) return;
  if (value->kind != Kind::array) refuse(section, key, *value, "an array of whole numbers");
  std::vector<Whole> numbers;
  for (const Value& item : value->items)
    numbers.push_back(whole_of(section, key, item, low, whole_max));
  set(setting, std::move(numbers), value->line);
}

void find_unknown_keys(const Section& section, std::span<const std::string> known) {
  for (const hjson::Member& member : section.object.members) {
    if (std::find(known.begin(), known.end(), member.key) != known.end()) continue;
    const std::string guess = closest(member.key, known);
    add(section, Severity::warning, "unknown-key", member.key, member.line,
        guess.empty() ? "DeepSpeed has no such key"
                      : fmt::format("DeepSpeed has no such key, did you mean '{}'?", guess));
    refuse_many_unknown_keys(section.findings, section.file, "DeepSpeed");
  }
}

void refuse_unknown_keys(const Section& section, std::span<const std::string> known) {
  for (const hjson::Member& member : section.object.members) {
    if (std::find(known.begin(), known.end(), member.key) != known.end()) continue;
    const std::string guess = closest(member.key, known);
    fail_input(where_of(section, member.key, member.line),
               fmt::format("DeepSpeed permits no other keys here (pydantic, extra=\"forbid\"){}",
                           guess.empty() ? "" : fmt::format(", did you mean '{}'?", guess)));
  }
}

}  // namespace lambcast::deepspeed
