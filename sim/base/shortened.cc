#include "sim/base/shortened.h"

#include <fmt/format.h>

namespace lambcast {
namespace {

bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

}  // namespace

std::string shortened(std::string_view text, std::size_t longest) {
  if (text.size() <= longest) return std::string(text);
  std::size_t head = longest * 2 / 3, tail = text.size() - longest / 3;
  // A UTF-8 character has at most three bytes after its first.
  for (int i = 0; i < 3 && head > 0 && continues_character(text[head]); ++i) --head;
  for (int i = 0; i < 3 && tail < text.size() && continues_character(text[tail]); ++i) ++tail;
  return fmt::format("{} [{} bytes left out] {}", text.substr(0, head), tail - head,
                     text.substr(tail));
}

}  // namespace lambcast
