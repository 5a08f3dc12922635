// What must be right before a sweep writes its first row.
//
// A value that cannot be used whatever the others are (`--scan freeze_step=0.1:0.5:0.1`, a cluster
// file that is missing, a bandwidth without unit, an unknown key of a cluster) is an error of who
// wrote it, not a result: thousands of rows that say so help nobody. Each value of each key is
// tried with the first values of the others, then with each other value of each other key in turn,
// until one point takes it: a few points per value, however many the sweep has. A value that hangs
// on others ("cluster.fabric.nodes_per_leaf", gpus_per_node) is refused only where no point that
// was tried takes it. What a combination breaks is left to its row.
#pragma once

#include "experiments/scenario/catalog.h"
#include "experiments/sweep/sweep_points.h"

namespace lambcast {

// Throws the InvalidValue. What the sweep names has been read into the catalog's texts then.
void check_values(const SweepPoints& points, Catalog& catalog);

}  // namespace lambcast
