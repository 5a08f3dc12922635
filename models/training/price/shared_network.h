// The collectives of a step where they lie: on one machine, written out in full, whose links they
// share at max-min fair rates (sim/network/flow_network.h).
//
// A collective alone takes what collective_costs.h says of it, T. On this machine a group may find
// more than it can use when alone (NICs of GPUs that take no part, the rate that a library loses
// where one GPU of a node is in use). Its flows are therefore scaled and capped so that, alone
// here, it lasts T and keeps the busiest link between nodes busy for w (nic_sharing.h):
//
//   bytes' = bytes x w / (time that this link takes for the bytes)
//   cap'   = bytes' / (the time of the round when alone here x T / the time of all rounds)
//
// The rest of the link, 1 - w / T, is free for other collectives. Groups of the same axis on other
// nodes (peer_groups.h) are laid next to it and go through its rounds with it. They meet it in the
// fabric, and then it takes longer than T.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "models/training/plan/work.h"

namespace lambcast {

struct CollectiveCost;

class SharedNetwork {
 public:
  // Larger steps are not written out.
  static constexpr int most_ranks = 65536;
  static constexpr std::size_t most_flows = 1 << 20;

  SharedNetwork(std::shared_ptr<const Cluster> cluster, int nodes, int gpus_per_node);

  std::shared_ptr<const Topology> topology();

  struct Laid {
    std::shared_ptr<const CommProgram> program;
    std::shared_ptr<const CommProgram> with_peers;
    Duration alone;         // on this machine, without peers
    Duration on_link;       // of its bytes on the busiest link between nodes
    std::size_t flows = 0;  // of all its rounds that differ, with peers
  };
  // Lays a call with the algorithm and protocol that it uses alone. If the group does not fit at
  // call.place, as when groups straddle nodes, it takes the first rank's place. `nodes`
  // are those on which peers make the same call; none: it has no peers.
  Laid lay(const Call& call, const CollectiveCost& alone, const std::vector<int>& nodes);

 private:
  std::shared_ptr<const Cluster> cluster_;
  int nodes_, gpus_per_node_;
  Machines machines_;
  std::map<std::tuple<ProcessGroup, int, int, Backend, Op, double, std::string, std::string>, Laid>
      laid_;
};

// Returns the program of a collective that lasts `time` alone and keeps the busiest link between
// nodes busy for `busy` of it.
CommProgram paced(const SharedNetwork::Laid& laid, const Topology& topology, Duration time,
                  Duration busy);
Duration time_alone(const CommProgram& program, const Topology& topology);

// Returns the program with all that it moves and waits for times `factor`, hence its time alone.
CommProgram scaled(const CommProgram& program, double factor);

}  // namespace lambcast
