#include "sim/base/file.h"

#include <fmt/format.h>

#include <array>
#include <fstream>
#include <iostream>

#include "sim/base/error.h"

namespace lambcast {

namespace {

std::string read_stream(std::istream& stream, const std::string& path, std::size_t max_mib) {
  const std::size_t max_bytes = max_mib << 20;
  std::string text;
  std::array<char, 65536> chunk;
  while (stream && text.size() <= max_bytes) {
    stream.read(chunk.data(), chunk.size());
    text.append(chunk.data(), static_cast<std::size_t>(stream.gcount()));
  }
  if (stream.bad() || (stream.fail() && !stream.eof())) fail_input({path, 0, {}}, "cannot be read");
  if (text.size() > max_bytes)
    fail_input({path, 0, {}}, fmt::format("larger than {} MiB", max_mib));
  return text;
}

}  // namespace

bool is_path(std::string_view name) {
  return name == "-" || name.find('/') != std::string_view::npos || name.ends_with(".toml");
}

std::string read_file(const std::string& path, std::size_t max_mib) {
  if (path == "-") {
    static const std::string once = read_stream(std::cin, "stdin", max_mib);
    return once;
  }
  std::ifstream stream(path, std::ios::binary);
  return read_stream(stream, path, max_mib);
}

}  // namespace lambcast
