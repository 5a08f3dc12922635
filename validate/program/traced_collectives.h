// Collectives of a traced step. Calls of one size in one group are counted together, next to the
// forecast of that call without other communication.
//
// Kineto records them since PyTorch 2.3, as arguments of communication kernels: "Collective name",
// "In msg nelems" and "Out msg nelems" (elements of one rank), "dtype", "Group size" and "Process
// Group Ranks". The size is that of nccl-tests: the larger of both messages. The ranks of a group
// are cut beyond 30, and such a group has no forecast. It has siblings if its node has other ranks:
// groups of the same axis make their calls at the same time.
//
// A kernel of a collective also waits for the last rank of its group, so measured times of a
// program whose ranks differ are longer than the transfer.
//
// Source: pytorch/kineto libkineto/src/output_json.cpp.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/collectives/process_group.h"
#include "sim/collectives/schedule.h"
#include "topologies/cluster.h"

namespace lambcast {

struct TracedCollective {
  std::string op;  // as recorded, such as _allgather_base
  double elements_in = 0, elements_out = 0;
  std::string type;  // PyTorch's ScalarType, such as BFloat16
  int ranks = 0;
  std::string members;  // "[0, 1, 2, 3]"; cut by "..." in large groups
  std::vector<Duration> times;

  bool same_call(const TracedCollective& other) const;
  double bytes() const;
  // Returns the operation; nothing for those that are not forecast, such as barrier.
  std::optional<Op> operation() const;
  // Returns the group in a job of `gpus` on nodes of this many GPUs; nothing if members are missing
  // or irregular.
  std::optional<ProcessGroup> group(int gpus_per_node, int gpus) const;
};

// Formats the calls with the largest total times; empty if there are none. The cluster determines
// the GPUs per node.
std::string collectives_report(const std::vector<TracedCollective>& calls, int steps,
                               const std::shared_ptr<const Cluster>& cluster, int gpus);

}  // namespace lambcast
