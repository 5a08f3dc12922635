// Returns whether a page or a figure contains a text.
#pragma once

#include <string>

namespace lambcast {

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace lambcast
