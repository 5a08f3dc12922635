// The treatment of each key of an input file.
#pragma once

#include <string>
#include <vector>

namespace lambcast {

enum class Treatment {
  applied,   // the forecast depends on it
  costless,  // it bears on no step's cost, for the reason given
  named,     // a finding tells what is taken instead
};

struct LedgerEntry {
  std::string key;
  int line = 0;
  Treatment treatment = Treatment::applied;
  std::string reason;  // of costless and named ones
};

}  // namespace lambcast
