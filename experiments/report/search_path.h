// For tests: replaces PATH of this process while the object lives, to hide gnuplot or to substitute
// it.
#pragma once

#include <cstdlib>
#include <string>

namespace lambcast::report {

struct SearchPath {
  explicit SearchPath(const std::string& path) { setenv("PATH", path.c_str(), 1); }
  ~SearchPath() { setenv("PATH", old.c_str(), 1); }
  SearchPath(const SearchPath&) = delete;
  SearchPath& operator=(const SearchPath&) = delete;
  std::string old = std::getenv("PATH");
};

}  // namespace lambcast::report
