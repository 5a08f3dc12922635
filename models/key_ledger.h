// The effect of each key of an input file.
#pragma once

#include <string>
#include <vector>

namespace lambcast {

enum class Treatment {
  applied,   // the forecast depends on it
  costless,  // it does not affect the cost of a step; `reason` says why
  named,     // a finding states the value used instead
};

struct LedgerEntry {
  std::string key;
  int line = 0;
  Treatment treatment = Treatment::applied;
  std::string reason;  // reason of costless and named keys
};

}  // namespace lambcast
