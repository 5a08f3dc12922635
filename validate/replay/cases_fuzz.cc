// Parses measured training figures as `validate --against FILE` does.
#include "sim/base/fuzz_target.h"
#include "validate/replay/replay.h"

FUZZ_TARGET(cases, text) {
  using namespace lambcast;
  for (const ReplayCase& replayed : parse_cases(text, "cases.csv"))
    if (!(replayed.measured > 0) || replayed.max_error < 0) throw std::logic_error("no case");
}
