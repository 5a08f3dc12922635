// Cache of times and traffic of collectives: a sweep requests the same few thousands of times.
//
// Each is planned and timed alone on an idle network, by either network model. Where collectives of
// a step run at the same time on the same wires, execute.cc starts from these and shared_network.h
// has the machine that they share.
//
// The closed form has one kind of such collectives: groups of the same axis on other nodes. A group
// of every n-th node (node_stride) has groups on the nodes that it skips, which make the same call
// at the same time. On an oversubscribed tree each of them has the n-th part of a leaf, of its
// nodes and of its uplinks, and at least one node with its own.
//
// Left out: sends between stages of a pipeline. The flow model spreads them over the passes. If all
// replicas send at once, a message takes longer, by the oversubscription at most.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_set>

#include "sim/collectives/collective.h"
#include "topologies/communication_key.h"

namespace lambcast {

struct CollectiveCost {
  Duration time;
  CalibratedInterval interval;
  Traffic traffic;
  std::string algorithm, protocol;
  Tip tip;
};

class KnownRuns;
class SharedNetwork;

// One per thread. Caches prices by the inputs of a cluster that affect collectives
// (communication_key.h). Clusters that differ only in other inputs, such as names and prices, share
// the first one's. The cache is cleared when it grows large, so that a sweep over thousands of
// clusters does not fill the memory.
class CollectiveCosts {
 public:
  struct Setting {
    const std::shared_ptr<const Cluster>& cluster;  // not empty
    ProcessGroup group;
    NetworkModel network;
    bool expand;
  };
  // `algorithm` empty: the cluster's forced one for all_reduce, else the library's choice. Valid
  // until the next call.
  const CollectiveCost& cost(const Setting& setting, Backend backend, Op op, Bytes size,
                             const std::string& algorithm = {});

  // The machine that collectives of one step share (shared_network.h).
  SharedNetwork& shared_network(const std::shared_ptr<const Cluster>& cluster, int nodes,
                                int gpus_per_node);

  // Runs that were forecast with these costs (run/known_runs.h makes and bounds them), kept here
  // because they are valid as long as the costs are.
  std::shared_ptr<KnownRuns>& runs() { return runs_; }

  // Statistics of the program: prices requested, and prices that had to be computed.
  struct Counts {
    std::int64_t asked = 0, planned = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  struct Shape {
    Machines machines;
    Transport transport;
  };
  using ClusterPtr = std::shared_ptr<const Cluster>;
  // A setting and its backend. The cluster is held by its address, without reference counting:
  // threads that share a cluster would otherwise wait for one another at each lookup.
  struct Place {
    const Cluster* cluster;  // a representative
    ProcessGroup group;
    int in_leaves;  // groups alike that share the leaves of a tree, this one counted
    NetworkModel network;
    bool expand;
    Backend backend;
    auto operator<=>(const Place&) const = default;
  };
  // Returns the cluster that represents all with the same communication. Every cluster seen is kept
  // alive, so that no other one can reuse its address.
  const ClusterPtr& representative(const ClusterPtr& cluster);
  Shape& shape(const Place& place);
  int wiring_of(const Cluster& cluster, const NodeSpec& node);
  void forget_where_full();
  std::map<ClusterPtr, ClusterPtr> seen_;  // to the first with the same communication
  std::unordered_set<ClusterPtr, HashOfCommunication, SameCommunication> firsts_;
  std::map<Place, std::unique_ptr<Shape>> shapes_;
  std::map<std::tuple<Place, Op, double, std::string>, CollectiveCost> costs_;
  // Keys that decide which links a machine has.
  using Wiring = std::tuple<FabricKind, int, double, std::vector<int>, int, int, int, bool>;
  std::map<Wiring, int> wirings_;  // to their numbers
  std::shared_ptr<LaidOuts> laid_outs_ = std::make_shared<LaidOuts>();
  std::map<std::tuple<std::shared_ptr<const Cluster>, int, int>, std::shared_ptr<SharedNetwork>>
      shared_;
  std::shared_ptr<KnownRuns> runs_;
  Counts counts_;
};

}  // namespace lambcast
