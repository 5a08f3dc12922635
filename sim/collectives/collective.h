// One collective on one machine: which algorithm and protocol it takes, what it puts on the wires,
// how long it lasts on its own, and the program that replays it inside a step.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "sim/collectives/choice.h"
#include "sim/collectives/lower.h"

namespace lambcast {

// The same cluster written two ways (see machine.h), each built when first needed; the full form
// grows with the nodes. Not to be shared between threads.
struct Machines {
  NodeSpec node;
  int nodes = 1;
  Fabric fabric = single_switch;
  bool fold = false;  // where nodes are alike and the fabric blocks nothing
  std::shared_ptr<const Machine> folded_if_built{}, full_if_built{};

  const std::shared_ptr<const Machine>& folded();
  const std::shared_ptr<const Machine>& full();
};

struct CollectiveRequest {
  Op op = Op::all_reduce;
  Bytes size;
  ProcessGroup group;
  Library library = Library::nccl;
  std::string algorithm;  // empty: as the library chooses
  std::string protocol;   // empty: the cheapest
  bool expand = false;    // --symmetry off: every rank and every round on its own
};

struct Collective {
  Op op;
  Bytes size;
  std::string algorithm;
  std::string protocol;
  Duration time;  // analytic, alone on the machine
  Traffic traffic;
  std::shared_ptr<const CommProgram> program;
  std::shared_ptr<const Machine> machine;  // the one the program's links belong to
};

// Throws Error (usage) when a forced algorithm or protocol does not exist or apply.
Collective plan_collective(const CollectiveRequest& request, Machines& machines,
                           const Transport& transport);

// Runs the program alone on a network model, event by event.
Duration simulate(const Collective& collective, NetworkModel model);

}  // namespace lambcast
