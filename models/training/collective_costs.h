// Times and traffic of collectives, remembered: a sweep asks for the same few thousands of times.
//
// Collectives of one training step never run at the same time (DeepSpeed blocks on each), so each
// is planned and timed alone, by either network model.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "sim/collectives/collective.h"
#include "topologies/cluster.h"

namespace lambcast {

// Which library moves which buffers.
enum class Channel { nccl, mpi_device, mpi_host };

struct CollectiveCost {
  Duration time;
  CalibratedInterval interval;
  Traffic traffic;
  std::string algorithm, protocol;
};

const LibrarySpec& library_of(const Cluster& cluster, Channel channel);
Endpoint endpoint_of(Channel channel);

class SharedNetwork;

// One per thread. Remembers by the address of the cluster, and keeps it alive, so that no other one
// comes to stand there. Forgets all where it has remembered a lot, so that a sweep over thousands
// of clusters does not fill the memory.
class CollectiveCosts {
 public:
  struct Setting {
    std::shared_ptr<const Cluster> cluster;
    ProcessGroup group;
    NetworkModel network;
    bool expand;
    auto operator<=>(const Setting&) const = default;
  };
  // `algorithm` empty: the cluster's forced one for all_reduce, else the library's choice. Valid
  // until the next call.
  const CollectiveCost& cost(const Setting& setting, Channel channel, Op op, Bytes size,
                             const std::string& algorithm = {});

  // The machine that collectives of one step share (shared_network.h).
  SharedNetwork& shared_network(const std::shared_ptr<const Cluster>& cluster, int nodes,
                                int gpus_per_node);

  // For people who ask what the program did: prices asked for, and those that had to be found out.
  struct Counts {
    std::int64_t asked = 0, planned = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  struct Shape {
    Machines machines;
    Transport transport;
  };
  Shape& shape(const Setting& setting, Channel channel);
  void forget_where_full();
  std::map<std::pair<Setting, Channel>, std::unique_ptr<Shape>> shapes_;
  std::map<std::tuple<Setting, Channel, Op, double, std::string>, CollectiveCost> costs_;
  std::map<std::tuple<std::shared_ptr<const Cluster>, int, int>, std::shared_ptr<SharedNetwork>>
      shared_;
  Counts counts_;
};

}  // namespace lambcast
