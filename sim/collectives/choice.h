// Algorithm that a communication library would run: the rules of its release decide, for every
// backend (backend.h).
//
//   nccl         offers several and takes the one that its own cost model finds cheapest
//                (chosen.h); if that is unknown, all candidates are returned, to be compared by our
//                own costs.
//   openmpi_4_1  the fixed decision rules of Open MPI 4.1 and later
//                (ompi/mca/coll/tuned/coll_tuned_decision_fixed.c).
//   openmpi_4_0  the rules before that, which were fitted to an older cluster.
#pragma once

#include <string>
#include <vector>

#include "sim/collectives/schedule.h"

namespace lambcast {

enum class DecisionRules { nccl, openmpi_4_0, openmpi_4_1 };

// Non-empty; every entry supports the operation over this group. `size` as in schedule.h.
// With `in_switch`, NCCL also has its NVLink switch reduce.
std::vector<std::string> candidates(DecisionRules rules, Op op, Bytes size,
                                    const ProcessGroup& group, bool in_switch = false);

}  // namespace lambcast
