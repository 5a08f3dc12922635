// Sizes for a run without a layout that nothing else makes fit into memory (memory_remedy.h), as
// flags: the first of each kind that does, forecast as it would run.
//
//   --zero-stage 3   weights divided among all ranks
//   --tp             twice as much, and again, to the GPUs of a node
//   --pp             twice as much, and again
//   both             the whole node, and stages
//
// and where none is enough, each with --recompute full. Enough is what fits at the high end of its
// forecast (memory.h); where nothing does, what fits as forecast. `lambcast plan` looks at all.
#pragma once

#include <string>
#include <vector>

#include "experiments/scenario/scenario.h"
#include "models/finding.h"

namespace lambcast {

// "--tp 8 --grad-accum 16 (61.2 GB)". Empty for a run that fits, has a layout, or for which less
// is enough.
std::vector<std::string> fitting_layouts(const Scenario& scenario, Catalog& catalog);

// The same as a finding, if there are any.
std::vector<Finding> find_fitting_layouts(const Scenario& scenario, Catalog& catalog);

}  // namespace lambcast
