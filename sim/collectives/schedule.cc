#include "sim/collectives/schedule.h"

#include <algorithm>

namespace lambcast {

const std::vector<std::string>& op_names() {
  static const std::vector<std::string> names{"all_reduce", "all_gather", "reduce_scatter",
                                              "all_to_all", "broadcast",  "send_recv",
                                              "reduce"};
  return names;
}

std::string_view name_of(Op op) { return op_names()[static_cast<std::size_t>(op)]; }

Traffic count_traffic(const CommSchedule& schedule, const Placement& placement) {
  Bytes sent, crossed;
  for (const Round& round : schedule.rounds) {
    for (const Send& send : schedule.send_sets[round.sends]) {
      const Bytes bytes = send.bytes * static_cast<double>(round.times);
      sent += bytes;
      if (placement.node_of(send.from) != placement.node_of(send.to)) crossed += bytes;
    }
  }
  return {sent / placement.senders(), crossed / placement.written};
}

}  // namespace lambcast
