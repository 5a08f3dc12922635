// Folds programs that share a network: flows that behave alike become one flow.
//
// Flows and links of all programs are divided into classes (sim/network/alike.h). Flows of a class
// have one rate and end together as long as whole sets start and end. A class of n flows becomes
// one flow with n times the bytes, cap and weight; a class of k links becomes one link of k times
// the capacity. If the same flows cross several links, as on the way from a GPU to its NIC, only
// the narrowest is kept. The times of all rounds are those of the unfolded programs, except for
// rounding to the picosecond.
//
// Not folded: programs with a route that crosses two links of one class, as through a ring of
// switches. They are returned unchanged.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "sim/engine/task_graph.h"

namespace lambcast {

struct FoldedPrograms {
  std::shared_ptr<const Topology> topology;
  // Folded programs in the order given; null for null inputs.
  std::vector<std::shared_ptr<const CommProgram>> programs;
};

// Classes of flows and links that were found on one topology. They depend on the paths of the sets
// and on which flows of a set are equal, but not on bytes. So the same calls with other bytes, as
// in another layout or step, have the same classes. Not thread-safe.
class KnownFolds {
 public:
  // The paths of each set, and a hash of the partition of its flows into classes of equal flows.
  using Key = std::vector<std::pair<std::shared_ptr<const Paths>, std::uint64_t>>;
  struct Classes;
  // Returns the entry of a key; null if the classes have not been found yet.
  std::shared_ptr<const Classes>& at(Key key);

 private:
  std::map<Key, std::shared_ptr<const Classes>> known_;
};

// `programs` are all programs that may run on `topology` at the same time. `known` is the cache of
// this topology, if there is one.
FoldedPrograms fold(const std::vector<std::shared_ptr<const CommProgram>>& programs,
                    const std::shared_ptr<const Topology>& topology, KnownFolds* known = nullptr);

}  // namespace lambcast
