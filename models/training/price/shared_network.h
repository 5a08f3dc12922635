// The collectives of a step at their places on one machine, simulated in full. They share its links
// at max-min fair rates (sim/network/flow_network.h).
//
// Without contention, a collective takes the time T of collective_costs.h. On this machine a group
// may have more bandwidth than it can use (NICs of GPUs that do not take part, the rate that a
// library loses if one GPU of a node is in use). Its flows are therefore scaled and capped so that,
// without contention here, the collective lasts T and keeps the busiest link between nodes busy for
// w (nic_sharing.h):
//
//   bytes' = bytes x w / (time that this link takes for the bytes)
//   cap'   = bytes' / (the round's time without contention x T / the time of all rounds)
//
// Other collectives can use the remaining share of the link, 1 - w / T. Groups of the same axis on
// other nodes (peer_groups.h) go through the same rounds at the same time. If they share links of
// the fabric with the collective, it takes longer than T.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "models/training/plan/work.h"
#include "sim/engine/fold.h"

namespace lambcast {

struct CollectiveCost;

class SharedNetwork {
 public:
  // Limits of the steps that are simulated on the shared network.
  static constexpr int most_ranks = 65536;
  static constexpr std::size_t most_flows = 1 << 20;

  // `machines` models `nodes` nodes of the cluster.
  SharedNetwork(std::shared_ptr<const Cluster> cluster, Machines machines, int nodes,
                int gpus_per_node);

  std::shared_ptr<const Topology> topology();

  struct Laid {
    std::shared_ptr<const CommProgram> program;
    std::shared_ptr<const CommProgram> with_peers;
    Duration alone;         // time on this machine without contention and peers
    Duration on_link;       // time that its bytes take on the busiest link between nodes
    std::size_t flows = 0;  // in all distinct rounds, with peers
  };
  // Places a call on the machine, with the algorithm and protocol that it uses without contention.
  // A call with more than most_flows flows is only counted: it has no program.
  // If the group does not fit at call.place, as when groups straddle nodes, it takes the first
  // rank's place. `nodes` are the nodes on which peers make the same call; if empty, it has no
  // peers.
  Laid lay(const Call& call, const CollectiveCost& alone, const std::vector<int>& nodes);

  using PathsList = std::vector<std::shared_ptr<const Paths>>;
  // Returns the paths of several sets in one list.
  std::shared_ptr<const Paths> joined(const PathsList& paths);

  // Folds programs that run on this network (sim/engine/fold.h).
  FoldedPrograms folded(const std::vector<std::shared_ptr<const CommProgram>>& programs);

 private:
  void forget_where_full();
  std::shared_ptr<const CommProgram> in_step(
      const std::vector<std::shared_ptr<const CommProgram>>& programs);

  std::shared_ptr<const Cluster> cluster_;
  int nodes_, gpus_per_node_;
  Machines machines_;
  std::map<std::tuple<ProcessGroup, int, int, Backend, Op, double, std::string, std::string>, Laid>
      laid_;
  std::map<PathsList, std::shared_ptr<const Paths>> joined_;
  KnownFolds folds_;
  std::size_t kept_flows_ = 0;  // number of flows in laid_ and joined_
};

// Returns the program of a collective that lasts `time` without contention, and keeps the busiest
// link between nodes busy for `busy` of that time.
CommProgram paced(const SharedNetwork::Laid& laid, const Topology& topology, Duration time,
                  Duration busy);
Duration time_alone(const CommProgram& program, const Topology& topology);

// Returns the program with its bytes and waits multiplied by `factor`, and hence also its time
// without contention.
CommProgram scaled(const CommProgram& program, double factor);

}  // namespace lambcast
