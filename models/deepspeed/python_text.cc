#include "models/deepspeed/python_text.h"

#include <algorithm>

#include "sim/base/error.h"

namespace lambcast::deepspeed {
namespace {

// Returns the position of the first byte outside a valid sequence, or npos.
std::size_t first_invalid(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  for (std::size_t i = 0; i < text.size();) {
    const unsigned lead = byte(i);
    const unsigned second = byte(i + 1);
    if (lead >= 0x80 && (lead < 0xC2 || lead > 0xF4)) return i;
    const std::size_t extra = lead < 0x80 ? 0 : lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
    for (std::size_t k = 1; k <= extra; ++k)
      if ((byte(i + k) & 0xC0) != 0x80) return i;
    // Overlong forms, surrogates and code points above U+10FFFF are recognised by the second byte.
    if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F) ||
        (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F))
      return i;
    i += extra + 1;
  }
  return std::string_view::npos;
}

}  // namespace

std::string python_text(std::string_view bytes, const std::string& file) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  if (bytes.starts_with(byte_order_mark)) bytes.remove_prefix(byte_order_mark.size());
  std::string text;
  text.reserve(bytes.size());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const bool before_newline = i + 1 < bytes.size() && bytes[i + 1] == '\n';
    if (bytes[i] != '\r')
      text += bytes[i];
    else if (!before_newline)
      text += '\n';
  }
  const std::size_t bad = first_invalid(text);
  if (bad == std::string_view::npos) return text;
  const auto line = std::count(text.data(), text.data() + bad, '\n') + 1;
  fail_input({file, static_cast<int>(line), {}}, "not UTF-8 text");
}

void append_utf8(std::string& text, std::uint32_t code) {
  if (code >= 0xD800 && code < 0xE000) code = 0xFFFD;
  const auto tail = [&](int shift) { text += static_cast<char>(0x80 | ((code >> shift) & 0x3F)); };
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xC0 | (code >> 6));
    tail(0);
  } else if (code < 0x10000) {
    text += static_cast<char>(0xE0 | (code >> 12));
    tail(6);
    tail(0);
  } else {
    text += static_cast<char>(0xF0 | (code >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

}  // namespace lambcast::deepspeed
