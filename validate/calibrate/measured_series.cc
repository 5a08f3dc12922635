#include "validate/calibrate/measured_series.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.h"

namespace lambcast::validate {
namespace {

// Refuses layouts that the cluster cannot hold.
int checked_nodes(const Measurement& table, const Cluster& cluster, const Where& where) {
  if (table.ranks < 2) fail_input(where, "a collective of one rank moves nothing");
  if (!table.nodes && !table.gpus_per_node)
    fail_input(where, fmt::format("does not say over how many nodes its {} ranks lie", table.ranks),
               "--nodes");
  const int nodes = nodes_of(table);
  if (nodes < 1 || table.ranks % nodes != 0)
    fail_input(where,
               fmt::format("{} ranks do not spread evenly over {} nodes", table.ranks, nodes));
  if (table.ranks / nodes > cluster.gpus_per_node)
    fail_input(where, fmt::format("{} ranks per node do not fit {}, whose nodes have {} GPUs",
                                  table.ranks / nodes, cluster.name, cluster.gpus_per_node));
  return nodes;
}

void add_part(MeasuredSeries& series, const Cluster& cluster, CollectiveSetting setting, Op op,
              const char* algorithm, double share, Bytes fixed) {
  setting.op = op;
  if (algorithm != nullptr) setting.algorithm = algorithm;
  series.parts.push_back({prepare(cluster, setting), share, fixed});
}

}  // namespace

int nodes_of(const Measurement& table) {
  if (table.nodes) return *table.nodes;
  if (!table.gpus_per_node) return 1;
  return (table.ranks + *table.gpus_per_node - 1) / *table.gpus_per_node;
}

MeasuredSeries series_of(const Measurement& table, const Cluster& cluster, bool mpi) {
  const Where where{table.provenance.source, 0, {}};
  const bool exchange = table.operation == Operation::compressed_allreduce && mpi;
  const auto& names = op_names();
  const auto found = std::find(names.begin(), names.end(), name_of(table.operation));
  if (found == names.end() && !exchange)
    fail_input(where,
               fmt::format("{} is not forecast here from {} tables", name_of(table.operation),
                           mpi ? "MPI" : "NCCL"),
               fmt::format("{}", fmt::join(names, ", ")));
  MeasuredSeries series;
  const int nodes = checked_nodes(table, cluster, where);
  series.ranks = table.ranks;
  series.nodes = nodes;
  series.gpus_per_node = table.ranks / nodes;
  CollectiveSetting setting;
  setting.ranks = table.ranks;
  setting.gpus_per_node = series.gpus_per_node;
  setting.mpi = mpi;
  if (exchange) {
    // The table names the algorithm of its all-gather, where one was forced.
    const bool ring = table.algorithm.value_or("").find("ring") != std::string::npos;
    const char* gather = ring ? "ring" : nullptr;
    add_part(series, cluster, setting, Op::all_to_all, "deepspeed_gather", 1. / 32, Bytes(0));
    add_part(series, cluster, setting, Op::all_gather, gather, 1. / 32, Bytes(0));
    add_part(series, cluster, setting, Op::all_gather, gather, 0, Bytes(4.0 * table.ranks));
    return series;
  }
  setting.algorithm = table.algorithm.value_or("");
  setting.protocol = table.protocol.value_or("");
  add_part(series, cluster, setting, static_cast<Op>(found - names.begin()), nullptr, 1, Bytes(0));
  return series;
}

Duration forecast_time(MeasuredSeries& series, Bytes size) {
  Duration sum;
  for (MeasuredSeries::Part& part : series.parts)
    sum += forecast(part.series, size * part.share + part.fixed).time;
  return sum;
}

}  // namespace lambcast::validate
