// Formats numbers of things in sentences: "1 GPU", "8 GPUs".
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace lambcast {

// `noun` must have a plural that ends in s.
inline std::string counted(std::int64_t number, std::string_view noun) {
  return fmt::format("{} {}{}", number, noun, number == 1 ? "" : "s");
}

}  // namespace lambcast
