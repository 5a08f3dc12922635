#include "sim/collectives/incast.h"

#include <cmath>

#include "sim/collectives/builders.h"

namespace lambcast {

double flows_at_port(const Layout& layout, int connections) {
  if (layout.nodes() < 3) return 0;
  return static_cast<double>(layout.gpus_per_node) * (layout.ranks - layout.gpus_per_node) *
         connections / builders::rails(layout);
}

double stalled_share(Bytes port_queue, double flows) {
  return std::erfc((port_queue / full_packet - flows) / (2 * std::sqrt(flows))) / 2;
}

Duration incast_wait(const Round& round, const Layout& layout, const PortQueue& queue,
                     int connections) {
  const double flows = flows_at_port(layout, connections);
  const double unhindered = round.same_order ? 2 : 10;  // packets of one message
  if (flows == 0 || round.at_once <= packet_payload * unhindered) return {};
  return queue.rto_min.scaled(stalled_share(queue.depth, flows));
}

}  // namespace lambcast
