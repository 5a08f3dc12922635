// A text as a whole number.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

namespace lambcast {

// Returns nothing for a text that is more or other than decimal digits, with or without a minus, or
// a number beyond 64 bits.
inline std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace lambcast
