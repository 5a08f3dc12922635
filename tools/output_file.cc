#include "tools/output_file.h"

#include <fmt/format.h>

#include <fstream>

#include "sim/base/error.h"

namespace lambcast {

void write_output(const std::string& path, std::string_view flag, std::string_view text) {
  if (path == "-") {
    fmt::print("{}", text);
    return;
  }
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!file) fail_input({path, 0, std::string(flag)}, "cannot be opened for writing");
  file << text;
  file.close();
  if (!file) throw Error(Exit::failure, fmt::format("{}: {}: cannot be written whole", path, flag));
}

}  // namespace lambcast
