#include "experiments/sweep/sweep_file.h"

#include <fmt/format.h>

#include "experiments/scenario/words.h"

namespace lambcast {
namespace {

std::string key_text(const std::string& key) {
  return key.find('.') == std::string::npos ? key : fmt::format("\"{}\"", key);
}

// Returns whole numbers unchanged, and all other values as a basic string of TOML.
std::string value_text(const std::string& value) {
  const bool whole = !value.empty() && value.size() < 18 && (value == "0" || value[0] != '0') &&
                     value.find_first_not_of("0123456789") == std::string::npos;
  if (whole) return value;
  std::string out = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out + "\"";
}

}  // namespace

std::string sweep_file(const WhatIf& base, const std::vector<Axis>& axes) {
  std::string out = "name = \"sweep\"\n\n[base]\n";
  for (const auto& [key, value] : base)
    out += fmt::format("{} = {}\n", key_text(key), value_text(value));
  out += "\n[grid]\n";
  for (const auto& [key, values] : axes) {
    if (base.contains(key))
      fail_input(flag(key), fmt::format("contradicts the values of {} that are listed", key),
                 "one of the two");
    std::string list;
    for (const std::string& value : values) list += (list.empty() ? "" : ", ") + value_text(value);
    out += fmt::format("{} = [{}]\n", key_text(key), list);
  }
  return out;
}

}  // namespace lambcast
