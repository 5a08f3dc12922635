// Which algorithm a communication library would run.
//
//   nccl         offers several and takes the one its cost model finds cheapest; so do we, with our
//                own costs: all candidates are returned.
//   openmpi_4_1  the fixed decision rules of Open MPI 4.1 and later
//                (ompi/mca/coll/tuned/coll_tuned_decision_fixed.c).
//   openmpi_4_0  the rules before that, which were fitted to an older cluster.
#pragma once

#include <string>
#include <vector>

#include "sim/collectives/schedule.h"

namespace lambcast {

enum class Library { nccl, openmpi_4_0, openmpi_4_1 };

// Library words as files and flags spell them: "nccl", "openmpi-4.0", "openmpi-4.1".
const std::vector<std::string>& library_names();

// Non-empty; every entry supports the operation over this group. `size` as in schedule.h.
// With `in_switch`, NCCL also has its NVLink switch reduce.
std::vector<std::string> candidates(Library library, Op op, Bytes size, const ProcessGroup& group,
                                    bool in_switch = false);

}  // namespace lambcast
