// Programs that share a network, with flows that are alike written as one.
//
// Flows and links of all programs are put into classes (sim/network/alike.h). Flows of a class have
// one rate as long as whole sets start and end, and end together. A class of n flows becomes one
// flow of n times the bytes, cap and weight; a class of k links becomes one link of k times the
// capacity. Of several that the same flows cross, as on the way from a GPU to its NIC, the
// narrowest is written. The times of all rounds are those of the unfolded programs, except for
// rounding to the picosecond.
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
