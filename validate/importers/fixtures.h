// Sample logs in this folder: the formats are exact, the numbers invented.
#pragma once

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace lambcast::validate {

inline std::string fixture(const std::string& name) {
  std::ifstream file(std::string(LAMBCAST_FIXTURES) + "/" + name);
  if (!file) throw std::runtime_error("no fixture " + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Returns the text with the first occurrence of `from` replaced.
inline std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  if (at == std::string::npos) throw std::runtime_error("the fixture holds no " + from);
  return text.replace(at, from.size(), to);
}

}  // namespace lambcast::validate
