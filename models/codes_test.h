// Returns the codes of findings in order, for tests of rules.
#pragma once

#include <string>
#include <vector>

#include "models/finding.h"

namespace lambcast {

inline std::vector<std::string> codes(const std::vector<Finding>& findings) {
  std::vector<std::string> list;
  for (const Finding& finding : findings) list.push_back(finding.code);
  return list;
}

}  // namespace lambcast
