// Names of exchanges as people read them: "+ef" marks error feedback, where files have ":owed".
#pragma once

#include <string>
#include <string_view>

namespace lambcast {

// Returns "int4+ef" for "int4:owed"; parse_exchange() reads both.
inline std::string shown_name(std::string name) {
  constexpr std::string_view kept = ":owed";
  const std::size_t at = name.find(kept);
  return at == std::string::npos ? name : name.replace(at, kept.size(), "+ef");
}

}  // namespace lambcast
