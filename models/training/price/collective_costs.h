// Cache of times and traffic of collectives: a sweep requests the same few thousand prices again
// and again.
//
// Each collective is planned and timed without contention, by either network model. If collectives
// of a step overlap on the same wires, execute.cc starts from these prices, and shared_network.h
// has the machine that they share.
//
// The closed form covers one kind of such contention: groups of the same axis on other nodes. A
// group on every n-th node (node_stride) has groups on the nodes that it skips, which make the same
// call at the same time. On an oversubscribed tree each group has 1/n of a leaf, in nodes and in
// uplinks, and at least one node.
//
// A send between pipeline stages n nodes apart is made by all nodes of the stage at the same time.
// If c of them are on one leaf and their receivers on another, each has 1/c of the leaf's uplinks.
//
// Not modelled: replicas that send at different times, and so contend less.
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

// Caches prices by the inputs of a cluster that affect collectives (communication_key.h); one cache
// per thread. Clusters that differ only in other inputs, such as names and prices, share prices.
// The cache is cleared when it grows large, so that a sweep over thousands of clusters does not
// fill the memory.
class CollectiveCosts {
 public:
  struct Setting {
    const std::shared_ptr<const Cluster>& cluster;  // not null
    ProcessGroup group;
    NetworkModel network;
    bool expand;
    int first_node = 0;  // node of the group's first member; used for sends over a tree
  };
  // Returns the cost of a collective. If `algorithm` is empty, uses the cluster's forced one for
  // all_reduce, else the library's choice. The reference is valid until the next call.
  const CollectiveCost& cost(const Setting& setting, Backend backend, Op op, Bytes size,
                             const std::string& algorithm = {});

  // Returns the machine that the collectives of one step share (shared_network.h).
  SharedNetwork& shared_network(const std::shared_ptr<const Cluster>& cluster, int nodes,
                                int gpus_per_node);

  // Returns the cache of runs that were forecast with these costs (run/known_runs.h). It is kept
  // here because those runs are valid as long as the costs.
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
  // A setting and its backend. It holds the cluster's address instead of a shared pointer: with
  // reference counts, threads that share a cluster would wait for one another at each lookup.
  struct Place {
    const Cluster* cluster;  // the representative of its class
    ProcessGroup group;
    int in_leaves;  // number of groups, this one included, that share the leaves of a tree
    NetworkModel network;
    bool expand;
    Backend backend;
    auto operator<=>(const Place&) const = default;
  };
  // Returns the representative of all clusters with the same communication. Every cluster seen is
  // kept alive, so that its address is never reused.
  const ClusterPtr& representative(const ClusterPtr& cluster);
  Shape& shape(const Place& place);
  int wiring_of(const Cluster& cluster, const NodeSpec& node);
  void forget_where_full();
  std::map<ClusterPtr, ClusterPtr> seen_;  // the first cluster with the same communication
  std::unordered_set<ClusterPtr, HashOfCommunication, SameCommunication> firsts_;
  std::map<Place, std::unique_ptr<Shape>> shapes_;
  std::map<std::tuple<Place, Op, double, std::string>, CollectiveCost> costs_;
  // Keys that decide which links a machine has.
  using Wiring = std::tuple<FabricKind, int, double, std::vector<int>, int, int, int, bool>;
  std::map<Wiring, int> wirings_;  // number of each wiring
  std::shared_ptr<LaidOuts> laid_outs_ = std::make_shared<LaidOuts>();
  std::map<std::tuple<std::shared_ptr<const Cluster>, int, int>, std::shared_ptr<SharedNetwork>>
      shared_;
  std::shared_ptr<KnownRuns> runs_;
  Counts counts_;
};

}  // namespace lambcast
