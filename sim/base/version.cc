#include "sim/base/version.h"

#include <fmt/format.h>

#include <charconv>

namespace lambcast {

Version parse_version(std::string_view text, const Where& where) {
  Version version{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0; i < version.size(); ++i) {
    const auto [next, error] = std::from_chars(at, end, version[i]);
    if (error != std::errc() || version[i] < 0 || version[i] > 99999)
      fail_input(where, fmt::format("'{}' is not a version", text), "such as 2.18.3");
    at = next;
    if (at == end || *at != '.') break;
    ++at;
  }
  if (at != end && *at != '+' && *at != '-' && *at != '.')
    fail_input(where, fmt::format("'{}' is not a version", text), "such as 2.18.3");
  return version;
}

std::string text_of(const Version& version) {
  return fmt::format("{}.{}.{}", version[0], version[1], version[2]);
}

}  // namespace lambcast
