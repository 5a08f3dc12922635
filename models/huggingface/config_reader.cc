#include "models/huggingface/config_reader.h"

#include <fmt/format.h>

#include <algorithm>

namespace lambcast::huggingface {
namespace {

using hjson::Kind;
using hjson::Value;

std::string written(const Value& value) {
  if (value.kind == Kind::string) return fmt::format("the text '{}'", value.text);
  if (value.kind == Kind::number) return value.text;
  return std::string(name_of(value.kind));
}

}  // namespace

Where ConfigReader::where(std::string_view key) const {
  const Value* value = root_.find(key);
  return {file_, value == nullptr ? 0 : value->line, std::string(key)};
}

const Value* ConfigReader::find(std::string_view key) {
  asked_.emplace_back(key);
  const Value* value = root_.find(key);
  return value == nullptr || value->kind == Kind::null ? nullptr : value;
}

bool ConfigReader::is_null(std::string_view key) {
  asked_.emplace_back(key);
  const Value* value = root_.find(key);
  return value != nullptr && value->kind == Kind::null;
}

std::int64_t ConfigReader::whole(std::string_view key, std::int64_t low, std::int64_t high) {
  const auto value = optional_whole(key, low, high);
  if (!value) fail_missing(key);
  return *value;
}

std::optional<std::int64_t> ConfigReader::optional_whole(std::string_view key, std::int64_t low,
                                                         std::int64_t high) {
  const Value* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->kind != Kind::number || !value->whole || *value->whole < low || *value->whole > high)
    fail_input(where(key), fmt::format("{} is not a whole number in range", written(*value)),
               fmt::format("{} to {}", low, high));
  return value->whole;
}

bool ConfigReader::truth(std::string_view key, bool otherwise) {
  const Value* value = find(key);
  if (value == nullptr) return otherwise;
  if (value->kind != Kind::boolean)
    fail_input(where(key), fmt::format("{} is not true or false", written(*value)));
  return value->boolean;
}

double ConfigReader::share(std::string_view key) {
  const Value* value = find(key);
  if (value == nullptr) return 0;
  if (value->kind != Kind::number || value->number < 0 || value->number > 1)
    fail_input(where(key), fmt::format("{} is not a fraction", written(*value)), "0 to 1");
  return value->number;
}

std::string ConfigReader::word(std::string_view key) {
  const Value* value = find(key);
  if (value == nullptr) fail_missing(key);
  if (value->kind != Kind::string)
    fail_input(where(key), fmt::format("{} is not text", written(*value)));
  return value->text;
}

void ConfigReader::refuse(std::string_view key, std::string_view what,
                          std::string_view allowed) const {
  fail_input(where(key), fmt::format("{} is not modelled", what), allowed);
}

bool ConfigReader::was_asked(std::string_view key) const {
  return std::ranges::find(asked_, key) != asked_.end();
}

void ConfigReader::refuse_misspelt() const {
  std::vector<std::string> absent;
  for (const std::string& key : asked_)
    if (root_.find(key) == nullptr) absent.push_back(key);
  for (const hjson::Member& member : root_.members) {
    if (was_asked(member.key) || member.key.starts_with("_")) continue;  // "_": of a class itself
    if (const std::string meant = closest(member.key, absent); !meant.empty())
      fail_input({file_, member.line, member.key},
                 fmt::format("unknown key, did you mean '{}'?", meant));
  }
}

void ConfigReader::fail_missing(std::string_view key) const {
  refuse_misspelt();
  fail_input({file_, 0, std::string(key)}, "is missing");
}

}  // namespace lambcast::huggingface
