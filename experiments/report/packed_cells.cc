#include "experiments/report/packed_cells.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace lambcast::report {
namespace {

// Returns the characters '#' to '~', without those that JSON escapes or that begin the end of a
// script.
const std::string& characters() {
  static const std::string all = [] {
    std::string found;
    for (char c = '#'; c <= '~'; ++c)
      if (c != '<' && c != '\\') found += c;
    return found;
  }();
  return all;
}

constexpr std::uint32_t least_digits = 10'000, mantissas = 90'000;

struct Decimal {
  std::uint32_t digits;  // five digits, the first of them not zero
  int exponent;
};

// Returns the five-digit form of a positive `value`.
Decimal decimal_of(float value) {
  std::array<char, 32> text;  // "1.2345e-06"
  const auto end =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::scientific, 4)
          .ptr;
  std::uint32_t digits = 0;
  for (const char c : {text[0], text[2], text[3], text[4], text[5]})
    digits = digits * 10 + static_cast<std::uint32_t>(c - '0');
  int exponent = 0;
  std::from_chars(text.data() + (text[7] == '+' ? 8 : 7), end, exponent);
  return {digits, exponent - 4};
}

}  // namespace

int packed_width(std::size_t values) {
  int width = 1;
  for (std::size_t reached = characters().size(); reached < values; reached *= characters().size())
    ++width;
  return width;
}

void append_packed(std::string& out, std::uint32_t value, int width) {
  const auto base = static_cast<std::uint32_t>(characters().size());
  const std::size_t begin = out.size();
  for (int i = 0; i < width; ++i, value /= base) out += characters()[value % base];
  std::reverse(out.begin() + static_cast<std::ptrdiff_t>(begin), out.end());
}

void Decimals::add(float value) {
  if (std::isnan(value) || value == 0) return;
  const auto [digits, exponent] = decimal_of(std::abs(value));
  least_ = any_ ? std::min(least_, exponent) : exponent;
  most_ = any_ ? std::max(most_, exponent) : exponent;
  any_ = true;
  negative_ |= value < 0;
  const bool whole = value == std::floor(value) && std::abs(value) < 1e7F;
  fraction_ |= value != std::floor(value);
  long_whole_ |= whole && digits * std::pow(10., exponent) != std::abs(value);
}

int Decimals::width() const {
  const auto powers_and_signs = static_cast<std::size_t>(powers()) * (negative_ ? 2 : 1);
  return packed_width(2 + powers_and_signs * mantissas);
}

std::uint32_t Decimals::code(float value) const {
  if (std::isnan(value)) return 0;
  if (value == 0) return 1;
  const auto [digits, exponent] = decimal_of(std::abs(value));
  const int of = exponent - least_ + (value < 0 ? powers() : 0);
  return 2 + static_cast<std::uint32_t>(of) * mantissas + digits - least_digits;
}

}  // namespace lambcast::report
