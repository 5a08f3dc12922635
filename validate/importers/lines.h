// Splits a log into lines, words and numbers.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.h"

namespace lambcast::validate {

inline std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

// Returns the text without colour escape sequences. Line breaks are kept.
inline std::string without_colours(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    const std::size_t escape = text.find("\x1b[");
    plain += text.substr(0, escape);
    if (escape == std::string_view::npos) break;
    text.remove_prefix(escape + 2);
    const std::size_t end = text.find_first_not_of("0123456789;");
    const bool closed = end != std::string_view::npos && text[end] != '\n';
    text.remove_prefix(std::min(closed ? end + 1 : end, text.size()));
  }
  return plain;
}

// Line i + 1 of the file is element i.
inline std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

inline std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (text = trimmed(text); !text.empty(); text = trimmed(text)) {
    const std::size_t end = text.find_first_of(" \t");
    words.push_back(text.substr(0, end));
    text.remove_prefix(words.back().size());
  }
  return words;
}

// Returns the word as a finite number if all of it is one.
inline std::optional<double> as_number(std::string_view word) {
  double value = 0;
  const auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (status != std::errc{} || end != word.data() + word.size() || !std::isfinite(value)) return {};
  return value;
}

// Returns the word as a whole number if all of it is one.
inline std::optional<std::int64_t> as_integer(std::string_view word) {
  std::int64_t value = 0;
  const auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (status != std::errc{} || end != word.data() + word.size()) return {};
  return value;
}

// Returns half a unit in the last digit of a printed number: 0.005 for "12.34", 5e4 for "2.1e+06".
inline double rounding_of(std::string_view word) {
  const std::size_t exponent = word.find_first_of("eE");
  const std::string_view mantissa = word.substr(0, exponent);
  const std::size_t point = mantissa.find('.');
  const double decimals =
      point == std::string_view::npos ? 0 : static_cast<double>(mantissa.size() - point - 1);
  double power = 0;
  if (exponent != std::string_view::npos) {
    std::string_view digits = word.substr(exponent + 1);
    if (!digits.empty() && digits.front() == '+') digits.remove_prefix(1);
    power = static_cast<double>(as_integer(digits).value_or(0));
  }
  return 0.5 * std::pow(10.0, power - decimals);
}

// Returns a printed time in microseconds. Throws Error if it is below a picosecond or above 104
// days.
inline Duration time_of(double us, const std::string& file, int line) {
  if (us < 1e-6 || us > 9e12) fail_input({file, line, {}}, fmt::format("{} us is no time", us));
  return Duration::microseconds(us);
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

inline bool starts_with(std::string_view text, std::string_view start) {
  return text.substr(0, start.size()) == start;
}

}  // namespace lambcast::validate
