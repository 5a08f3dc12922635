// Names of exchanges for people, in which "+ef" marks error feedback.
#pragma once

#include <string>
#include <string_view>

namespace lambcast {

// Returns the name with "+ef" in place of `kept`, the suffix in files. parse_exchange() reads both.
inline std::string shown_name(std::string name) {
  constexpr std::string_view kept = ":owed";
  const std::size_t at = name.find(kept);
  return at == std::string::npos ? name : name.replace(at, kept.size(), "+ef");
}

}  // namespace lambcast
