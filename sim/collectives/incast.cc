#include "sim/collectives/incast.h"

#include <cmath>

#include "sim/collectives/builders.h"

namespace lambcast {

double flows_at_port(const Placement& placement, int connections) {
  if (placement.nodes() < 3) return 0;
  return static_cast<double>(placement.per_node) * (placement.ranks - placement.per_node) *
         connections / builders::rails(placement) * placement.groups_per_nic;
}

double stalled_share(Bytes port_queue, double flows) {
  return std::erfc((port_queue / full_packet - flows) / (2 * std::sqrt(flows))) / 2;
}

Duration incast_wait(const Round& round, const Placement& placement, const PortQueue& queue,
                     int connections) {
  const double flows = flows_at_port(placement, connections);
  const double unhindered = round.same_order ? 2 : 10;  // packets sent before an acknowledgement
  if (flows == 0 || round.at_once <= packet_payload * unhindered) return {};
  return queue.rto_min.scaled(stalled_share(queue.depth, flows));
}

}  // namespace lambcast
