// Programs that share a network, with flows that are alike written as one.
//
// The flows and links of all programs are put into classes by colour refinement (Paige and Tarjan,
// SIAM J. Comput. 16(6), 1987, solve the same problem):
//
//   two links are alike   if they have one capacity and carry as many flows of each class, at the
//                         same hop of their routes
//   two flows are alike   if they are of one set, move as many bytes under the same cap, and their
//                         routes cross links that are alike in the same order
//
// This is the coarsest partition that is stable under both rules. Max-min rates are unique and
// depend on link loads alone, so flows of a class have one rate as long as whole sets start and
// end, and end together. A class of n flows becomes one flow of n times the bytes, cap and weight;
// a class of k links becomes one link of k times the capacity. Of several that the same flows
// cross, as on the way from a GPU to its NIC, the narrowest is written. The times of all rounds are
// those of the unfolded programs, except for rounding to the picosecond.
//
// Left out: routes that cross two links of one class, as through a ring of switches. Such programs
// are returned as they are.
#pragma once

#include <memory>
#include <vector>

#include "sim/engine/task_graph.h"

namespace lambcast {

struct FoldedPrograms {
  std::shared_ptr<const Topology> topology;
  // In the order given; null for those that were null.
  std::vector<std::shared_ptr<const CommProgram>> programs;
};

// `programs` are all that may run on `topology` at the same time.
FoldedPrograms fold(const std::vector<std::shared_ptr<const CommProgram>>& programs,
                    const std::shared_ptr<const Topology>& topology);

}  // namespace lambcast
