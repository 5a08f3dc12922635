#include "models/launchers/key_reader.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.h"

namespace lambcast::launchers {
namespace {

using hjson::Kind;
using hjson::Value;

constexpr std::string_view empty_value = "null, false or empty";

// Returns whether a value is null, false or empty.
bool is_off(const Value& value) {
  return value.kind == Kind::null || (value.kind == Kind::boolean && !value.boolean) ||
         (value.kind == Kind::array && value.items.empty()) ||
         (value.kind == Kind::object && value.members.empty());
}

}  // namespace

Where KeyReader::where(std::string_view key) const {
  for (const hjson::Member& member : map_.members)
    if (member.key == key) return {file_, member.line, full(key)};
  return {file_, map_.line, full(key)};
}

LedgerEntry& KeyReader::entry(std::string_view key, Treatment treatment, std::string_view reason) {
  const auto known = std::ranges::find(result_.ledger, full(key), &LedgerEntry::key);
  LedgerEntry& entry = known != result_.ledger.end() ? *known : result_.ledger.emplace_back();
  entry = {full(key), where(key).line, treatment, std::string(reason)};
  return entry;
}

const Value* KeyReader::find(std::string_view key) {
  result_.keys.applied.insert(full(key));
  const Value* value = map_.find(key);
  if (value == nullptr) return nullptr;
  if (value->kind != Kind::null) {
    entry(key, Treatment::applied, "");
    return value;
  }
  entry(key, Treatment::costless, empty_value);
  return nullptr;
}

std::optional<KeyReader> KeyReader::section(std::string_view key) {
  const Value* value = map_.find(key);
  if (value == nullptr || value->kind == Kind::null) return std::nullopt;
  if (value->kind != Kind::object)
    fail_input(where(key), fmt::format("{} is not a map of keys", name_of(value->kind)));
  return KeyReader(*value, full(key) + ".", file_, result_);
}

std::optional<std::int64_t> KeyReader::whole(std::string_view key, std::int64_t low) {
  const Value* value = find(key);
  if (value == nullptr || value->text == "auto") return std::nullopt;
  if (value->kind != Kind::number || !value->whole || *value->whole < low)
    fail_input(where(key), fmt::format("'{}' is not a whole number from {}", value->text, low));
  return value->whole;
}

std::optional<double> KeyReader::number(std::string_view key) {
  const Value* value = find(key);
  if (value == nullptr || value->text == "auto") return std::nullopt;
  if (value->kind != Kind::number || value->number < 0)
    fail_input(where(key), fmt::format("'{}' is not a number from 0", value->text));
  return value->number;
}

bool KeyReader::truth(std::string_view key, bool otherwise) {
  const Value* value = find(key);
  if (value == nullptr) return otherwise;
  if (value->kind != Kind::boolean && value->text != "auto")
    fail_input(where(key), fmt::format("'{}' is not true or false", value->text));
  return value->kind == Kind::boolean ? value->boolean : true;
}

std::string KeyReader::text(std::string_view key) {
  const Value* value = find(key);
  if (value == nullptr) return {};
  if (value->kind == Kind::array || value->kind == Kind::object)
    fail_input(where(key), fmt::format("{} is not a word", name_of(value->kind)));
  return value->text;
}

std::string KeyReader::word(std::string_view key, std::string_view otherwise) {
  std::string word = text(key);
  for (char& c : word)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return word.empty() ? std::string(otherwise) : word;
}

bool KeyReader::says(std::string_view key, std::string_view word) {
  result_.keys.applied.insert(full(key));
  const Value* value = map_.find(key);
  return value != nullptr && value->text == word && find(key) != nullptr;
}

void KeyReader::copy(std::string_view key, const char* what_if) {
  if (const auto value = whole(key)) set(what_if, fmt::format("{}", *value));
}

void KeyReader::set(const char* what_if, std::string_view value) {
  result_.what_if.emplace_back(what_if, value);
}

void KeyReader::leave_out(std::string_view key, std::string_view what) {
  entry(key, Treatment::named, what);
  result_.findings.push_back({Severity::note, "not-modelled", describe(where(key), what)});
}

void KeyReader::refuse(std::string_view key, std::string_view what, std::string_view allowed) {
  fail_input(where(key), what, allowed);
}

void KeyReader::finish(const std::vector<CostlessKeys>& costless) {
  result_.keys.costless.insert(result_.keys.costless.end(), costless.begin(), costless.end());
  std::vector<std::string> unknown;
  int line = 0;
  for (const hjson::Member& member : map_.members) {
    const std::string key = full(member.key);
    const bool is_read = std::ranges::any_of(result_.ledger, [&](const LedgerEntry& entry) {
      return entry.key == key || entry.key.starts_with(key + ".");
    });
    if (is_read) continue;
    const std::string_view reason = costless_reason(costless, member.key);
    if (!reason.empty() || is_off(member.value)) {
      entry(member.key, Treatment::costless, reason.empty() ? empty_value : reason);
      continue;
    }
    entry(member.key, Treatment::named, "not modelled: the forecast is of a run without it");
    unknown.push_back(key);
    if (line == 0) line = member.line;
  }
  if (unknown.empty()) return;
  const std::string names = fmt::format("{}", fmt::join(unknown, ", "));
  result_.findings.push_back(
      {Severity::note, "not-modelled",
       describe({file_, line, names}, "not modelled: the forecast is of a run without it")});
}

}  // namespace lambcast::launchers
