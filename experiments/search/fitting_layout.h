// Proposes flags for a run without a layout that no other remedy (memory_remedy.h) makes fit in
// memory. For each kind, it returns the first size that fits by its own forecast.
//
//   --zero-stage 3   weights sharded over all ranks
//   --tp             doubled up to the GPUs of a node
//   --pp             doubled
//   both             the whole node, and stages
//
// If none fits, each is tried with --recompute full. A size must fit at the high end of its
// forecast (memory.h); if none does, it must fit as forecast. If none fits at all, the GPUs are
// doubled, with the ZeRO stage of the run and with stage 3. `lambcast plan` searches all layouts.
#pragma once

#include <string>
#include <vector>

#include "experiments/scenario/scenario.h"
#include "models/finding.h"

namespace lambcast {

// Returns flags such as "--tp 8 --grad-accum 16 (61.2 GB)". Empty for a run that fits, has a
// layout, or for which a smaller change is enough.
std::vector<std::string> fitting_layouts(const Scenario& scenario, Catalog& catalog);

// Returns the smallest change that makes a run fit: the first remedy that keeps the GPU
// (memory_remedy.h), else the first layout, else a GPU with more memory. Empty if it fits, or none
// is found.
std::string smallest_change(const Scenario& scenario, Catalog& catalog);

// Returns the flags as a finding, if there are any. `fits` states whether the run fits. None for a
// run with a layout, whose remedies its memory names.
std::vector<Finding> find_fitting_layouts(const Scenario& scenario, bool fits, Catalog& catalog);

}  // namespace lambcast
