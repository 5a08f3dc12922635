#include "sim/base/printable.h"

#include <algorithm>
#include <cstddef>

#include "sim/base/shortened.h"

namespace lambcast {
namespace {

// Limit of a message in bytes: enough for a path, a sentence and a list of describe().
constexpr std::size_t longest_message = 20'000;

// Returns the length in bytes of the UTF-8 character at `at`, or 0 if there is no valid one (RFC
// 3629: no overlong forms, no surrogates, nothing above U+10FFFF).
std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0U;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  unsigned low = 0x80, high = 0xbf;  // range of the second byte
  if (first == 0xe0) low = 0xa0;
  if (first == 0xed) high = 0x9f;
  if (first == 0xf0) low = 0x90;
  if (first == 0xf4) high = 0x8f;
  if (first < 0xc2 || first > 0xf4 || byte(1) < low || byte(1) > high) return 0;
  for (std::size_t i = 2; i < length; ++i)
    if (byte(i) < 0x80 || byte(i) > 0xbf) return 0;
  return length;
}

bool is_control(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first < 0x20 || first == 0x7f;
  return first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0;
}

}  // namespace

std::string printable(std::string_view text) {
  if (std::ranges::all_of(text, [](char c) { return c >= 0x20 && c < 0x7f; }))
    return std::string(text);
  std::string clean;
  clean.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    const std::string_view character = text.substr(at, length);
    if (length == 0) {
      clean += "\uFFFD";
    } else if (is_control(character)) {
      clean += ' ';
    } else {
      clean += character;
    }
    at += length == 0 ? 1 : length;
  }
  return clean;
}

std::string one_line(std::string_view message) {
  std::string line;
  for (const char c : shortened(message, longest_message))
    line += c == '\n' ? std::string("; ") : std::string(1, c);
  return printable(line);
}

}  // namespace lambcast
