// Flows of the calls of a segment of passes, in the order in which a rank issues them. NCCL runs
// the calls of one communicator one after the other; calls of different communicators overlap:
//
//   communicator A   | a1  | a2           |
//   communicator B   | b1       | b2  |
//   phases           |  1  |  2 |  3      |
//
// A phase ends where a call follows another one, if each call takes its time without contention.
// Phases end at the times at which one call would follow another without contention. A phase has
// the share of each call that falls into it. Under contention, all communicators wait for the end
// of a phase. Calls of one communicator over the same links are merged into one call with the bytes
// of all, which takes as long as the calls one after the other.
//
// Not modelled: the order of the rounds of one call, which start together.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "sim/collectives/placement.h"
#include "sim/network/network.h"

namespace lambcast {

struct IssuedFlows {
  std::vector<std::shared_ptr<const Paths>> paths;
  std::vector<Flow> flows;  // in the order of `paths`
};

class CallsInOrder {
 public:
  using Communicator = std::pair<ProcessGroup, Place>;
  // Adds a call that takes `seconds` without contention.
  void add(const Communicator& by, IssuedFlows flows, double seconds);
  std::vector<IssuedFlows> phases() const;

 private:
  struct Issued {
    IssuedFlows of;         // flows of all calls over the same links
    std::size_t paths = 0;  // number of paths of one of these calls
    double seconds = 0;
  };
  std::vector<std::pair<Communicator, std::vector<Issued>>> calls_;
};

}  // namespace lambcast
