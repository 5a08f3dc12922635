// Answers about files that a user drops on the page: a log calibrates the cluster, and the keys of
// a DeepSpeed file are listed.
#pragma once

#include <string>

#include "experiments/scenario/what_if.h"

namespace lambcast {

struct DroppedLog {
  std::string text;
  std::string file;  // its name, for messages
};

// Returns {"cluster_text", "report"}: the description of the cluster in `texts`, fitted to the
// collectives or the training steps of the log, as `lambcast calibrate` does. A training log states
// its own run; a log without a description of its run is one of the run in `texts`. Throws Error
// (usage) for logs that cannot be read or fitted.
std::string calibrate_answer(const DroppedLog& log, const WhatIf& texts);

// Returns the keys of the input files of a run: [{"file", "replaced": [keys replaced by flags],
// "keys": [{"key", "line", "treatment", "reason"}]}].
std::string inputs_answer(const WhatIf& texts);

}  // namespace lambcast
