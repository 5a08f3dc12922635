#include "sim/base/overrides.h"

#include <fmt/format.h>

#include <string_view>

namespace lambcast {

Error blame_flags(const Error& error, const std::string& preset,
                  std::span<const std::string> flags) {
  std::string_view what = error.what();
  if (what.starts_with("--set ")) return error;
  if (!preset.empty() && what.starts_with(preset + ":")) what.remove_prefix(what.find(": ") + 2);
  return Error(error.code(), fmt::format("{}: {}", fmt::join(flags, ", "), what));
}

}  // namespace lambcast
