#include "validate/program/recorded_trace.h"

#include <filesystem>
#include <fstream>

#include "sim/base/error.h"

namespace lambcast {

RecordedTrace read_trace(const std::string& path) {
  if (!std::filesystem::is_regular_file(path))
    fail_input({path, 0, "--job-trace"}, "is not a file that can be read");
  constexpr std::string_view sqlite_begin = "SQLite format 3";
  std::string begin(sqlite_begin.size(), ' ');
  std::ifstream(path, std::ios::binary)
      .read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return begin == sqlite_begin ? read_nsight(path) : read_kineto(path);
}

}  // namespace lambcast
