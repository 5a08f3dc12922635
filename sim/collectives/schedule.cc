#include "sim/collectives/schedule.h"

#include <algorithm>

namespace lambcast {

const std::vector<std::string>& op_names() {
  static const std::vector<std::string> names{"all_reduce", "all_gather", "reduce_scatter",
                                              "all_to_all", "broadcast",  "send_recv"};
  return names;
}

std::string_view name_of(Op op) { return op_names()[static_cast<std::size_t>(op)]; }

int Layout::ranks_on(int node) const {
  return std::min(gpus_per_node, ranks - node * gpus_per_node);
}

Traffic count_traffic(const Schedule& schedule, const Layout& layout) {
  Bytes sent, crossed;
  for (const Round& round : schedule.rounds) {
    for (const Send& send : schedule.send_sets[round.sends]) {
      const Bytes bytes = send.bytes * static_cast<double>(round.times);
      sent += bytes;
      if (layout.node_of(send.from) != layout.node_of(send.to)) crossed += bytes;
    }
  }
  return {sent / layout.senders(), crossed / (layout.folded ? 1 : layout.nodes())};
}

}  // namespace lambcast
