// Times and traffic of collectives, remembered: a sweep asks for the same few thousands of times.
//
// Collectives of one training step never run at the same time (DeepSpeed blocks on each), so each
// is planned and timed alone, by either network model.
#pragma once

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

// One per thread. Remembers by the address of the cluster, which must outlive it.
class CollectiveCosts {
 public:
  struct Group {
    const Cluster* cluster;
    int gpus;
    int gpus_per_node;
    NetworkModel network;
    bool expand;
    auto operator<=>(const Group&) const = default;
  };
  // `algorithm` empty: the cluster's forced one for all_reduce, else the library's choice.
  const CollectiveCost& cost(const Group& group, Channel channel, Op op, Bytes size,
                             const std::string& algorithm = {});

 private:
  struct Shape {
    Machines machines;
    Transport transport;
  };
  Shape& shape(const Group& group, Channel channel);
  std::map<std::pair<Group, Channel>, std::unique_ptr<Shape>> shapes_;
  std::map<std::tuple<Group, Channel, Op, double, std::string>, CollectiveCost> costs_;
};

}  // namespace lambcast
