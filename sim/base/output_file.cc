#include "sim/base/output_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "sim/base/durable_file.h"
#include "sim/base/error.h"

namespace lambcast {
namespace {

namespace fs = std::filesystem;

// Returns whether the path is a regular file with content that would be lost.
bool holds_text(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && fs::file_size(path, error) > 0 && !error;
}

}  // namespace

void write_output(const std::string& path, std::string_view flag, std::string_view text) {
  if (path == "-") {
    fmt::print("{}", text);
    return;
  }
  const bool replaces = holds_text(path);
  std::ofstream file(path, std::ios::binary | (replaces ? std::ios::app : std::ios::trunc));
  if (!file && is_of_disk(errno))
    throw Error(Exit::failure, fmt::format("{}: {}: {}", path, flag, std::strerror(errno)));
  if (!file) fail_input({path, 0, std::string(flag)}, "cannot be opened for writing");
  if (replaces) return replace_file(fs::canonical(path), text);
  file << text;
  file.close();
  if (!file)
    throw Error(Exit::failure, fmt::format("{}: {}: was written only in part", path, flag));
}

}  // namespace lambcast
