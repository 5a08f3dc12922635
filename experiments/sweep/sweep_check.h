// Checks the values of a sweep before it writes its first row.
//
// Some values are invalid in every combination: `--scan freeze_step=0.1:0.5:0.1`, a missing cluster
// file, a bandwidth without unit, an unknown key of a cluster. These are user errors, reported once
// instead of in thousands of rows. Each value of each key is tried with the first values of the
// other keys. Then each other value of each other key is tried in turn, until one point accepts it.
// That takes a few points per value for a sweep of any size. A value that depends on others
// ("cluster.fabric.nodes_per_leaf", gpus_per_node) is rejected only if no point tried accepts it.
// An invalid combination is reported in its row.
#pragma once

#include "experiments/scenario/catalog.h"
#include "experiments/sweep/sweep_points.h"

namespace lambcast {

// Throws the InvalidValue of the first invalid value. Afterwards all files of the sweep are in the
// catalog's texts.
void check_values(const SweepPoints& points, Catalog& catalog);

}  // namespace lambcast
