#include "sim/collectives/schedule.h"

#include <cstdlib>

namespace lambcast {

const std::vector<std::string>& op_names() {
  static const std::vector<std::string> names{"all_reduce", "all_gather", "reduce_scatter",
                                              "all_to_all", "broadcast",  "send_recv",
                                              "reduce"};
  return names;
}

int crossings(const Send& send, const Placement& placement) {
  if (std::abs(send.to - send.from) >= placement.per_node) return send.count;
  int crossing = 0;
  for (int i = 0; i < send.count; ++i)
    if (placement.node_of(send.from + i) != placement.node_of(send.to + i)) ++crossing;
  return crossing;
}

std::string_view name_of(Op op) { return op_names()[static_cast<std::size_t>(op)]; }

std::size_t sends_in(const std::vector<Send>& sends) {
  std::size_t all = 0;
  for (const Send& send : sends) all += static_cast<std::size_t>(send.count);
  return all;
}

Traffic count_traffic(const CommSchedule& schedule, const Placement& placement) {
  Bytes sent, crossed;
  for (const Round& round : schedule.rounds) {
    for (const Send& send : schedule.send_sets[round.sends]) {
      const Bytes bytes = send.bytes * static_cast<double>(round.times);
      sent += bytes * send.count;
      crossed += bytes * crossings(send, placement);
    }
  }
  return {sent / placement.senders(), crossed / placement.written};
}

}  // namespace lambcast
