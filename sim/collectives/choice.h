// The algorithm that a communication library would run: the rules of its release decide, for every
// backend (backend.h).
//
//   nccl         offers several algorithms and runs the one that its own cost model rates cheapest
//                (chosen.h); if that is unknown, all candidates are returned and compared by our
//                own costs.
//   openmpi_4_1  the fixed decision rules of Open MPI 4.1 and later
//                (ompi/mca/coll/tuned/coll_tuned_decision_fixed.c).
//   openmpi_4_0  the earlier rules, which were fitted to an older cluster.
#pragma once

#include <string>
#include <vector>

#include "sim/collectives/schedule.h"

namespace lambcast {

enum class DecisionRules { nccl, openmpi_4_0, openmpi_4_1 };

// Returns at least one algorithm; each supports the operation over this group. `size` as in
// schedule.h. With `in_switch`, NCCL may also use the reduction in the NVLink switch.
std::vector<std::string> candidates(DecisionRules rules, Op op, Bytes size,
                                    const ProcessGroup& group, bool in_switch = false);

}  // namespace lambcast
