#include "validate/calibrate/setting.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.h"

namespace lambcast::validate {

CollectiveSetting setting_of(const Measurement& table, const Cluster& cluster, bool mpi) {
  const Where where{table.provenance.source, 0, {}};
  const auto& names = op_names();
  const auto found = std::find(names.begin(), names.end(), name_of(table.operation));
  if (found == names.end())
    fail_input(where, fmt::format("{} is not forecast on its own", name_of(table.operation)),
               fmt::format("{}", fmt::join(names, ", ")));
  if (table.ranks < 2) fail_input(where, "a collective of one rank moves nothing");
  if (!table.nodes && !table.gpus_per_node)
    fail_input(where, fmt::format("does not say over how many nodes its {} ranks lie", table.ranks),
               "--nodes");
  const int nodes =
      table.nodes ? *table.nodes : (table.ranks + *table.gpus_per_node - 1) / *table.gpus_per_node;
  if (nodes < 1 || table.ranks % nodes != 0)
    fail_input(where,
               fmt::format("{} ranks do not spread evenly over {} nodes", table.ranks, nodes));
  const int per_node = table.ranks / nodes;
  if (per_node > cluster.gpus_per_node)
    fail_input(where, fmt::format("{} ranks per node do not fit {}, whose nodes have {} GPUs",
                                  per_node, cluster.name, cluster.gpus_per_node));
  CollectiveSetting setting;
  setting.op = static_cast<Op>(found - names.begin());
  setting.ranks = table.ranks;
  setting.gpus_per_node = per_node;
  setting.mpi = mpi;
  setting.algorithm = table.algorithm.value_or("");
  setting.protocol = table.protocol.value_or("");
  return setting;
}

}  // namespace lambcast::validate
