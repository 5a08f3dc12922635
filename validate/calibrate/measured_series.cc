#include "validate/calibrate/measured_series.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/staging.h"
#include "models/device/device.h"
#include "sim/base/error.h"
#include "sim/collectives/compressed_exchange.h"

namespace lambcast::validate {
namespace {

bool is_pair(Operation operation) {
  return operation == Operation::ping_pong || operation == Operation::stream;
}

// Returns the number of nodes. Throws Error for a layout that the cluster cannot hold.
int checked_nodes(const Measurement& table, const Cluster& cluster, const Where& where) {
  if (table.ranks < 2) fail_input(where, "a collective of one rank moves nothing");
  if (!table.nodes && !table.gpus_per_node)
    fail_input(where,
               fmt::format("does not state the number of nodes of its {} ranks", table.ranks),
               "--nodes");
  if (is_pair(table.operation) && table.ranks != 2)
    fail_input(where, fmt::format("{} ranks are no pair", table.ranks));
  const int nodes = nodes_of(table, cluster);
  if (nodes < 1 || table.ranks % nodes != 0)
    fail_input(where,
               fmt::format("{} ranks do not spread evenly over {} nodes", table.ranks, nodes));
  if (table.ranks / nodes > cluster.gpus_per_node)
    fail_input(where, fmt::format("{} ranks per node do not fit {}: its nodes have {} GPUs",
                                  table.ranks / nodes, cluster.name, cluster.gpus_per_node));
  return nodes;
}

// Returns the messages of the exchange of `size` bytes of fp32, unpadded as in the tables. Without
// staging, MPI sends the device buffers themselves.
std::vector<ExchangeMessage> messages_of(Bytes size, int ranks, bool staged) {
  return compressed_exchange(size.value() / sizeof(float), ranks,
                             staged ? Backend::mpi_host : Backend::mpi_device)
      .messages();
}

void add_exchange(MeasuredSeries& series, const Measurement& table, const Cluster& cluster,
                  CollectiveSetting setting) {
  series.exchange = true;
  if (table.staging) series.copies = host_copies(cluster, load_device(cluster.device));
  // The table names the algorithm of its all-gather if one was forced.
  const bool ring = table.algorithm.value_or("").find("ring") != std::string::npos;
  for (const ExchangeMessage& message :
       messages_of(Bytes(), table.ranks, table.staging.has_value())) {
    setting.op = message.op;
    setting.algorithm = ring && message.op == Op::all_gather ? "ring" : message.algorithm;
    series.parts.push_back({message.op, curve_of(cluster, setting), message.op != Op::all_reduce});
  }
}

Op collective_of(const Measurement& table, Backend backend, const Where& where) {
  const auto& names = op_names();
  const auto found = std::find(names.begin(), names.end(), name_of(table.operation));
  if (found == names.end())
    fail_input(where,
               fmt::format("{} is not forecast here from {} tables", name_of(table.operation),
                           is_mpi(backend) ? "MPI" : "NCCL"),
               fmt::format("{}", fmt::join(names, ", ")));
  return static_cast<Op>(found - names.begin());
}

Bandwidth wire_rate(const Measurement& table, const Cluster& cluster, Backend backend,
                    const Where& where) {
  if (table.operation != Operation::stream)
    fail_input(where,
               "a latency measured without a library does not set that of a library; try: tables "
               "of NCCL or MPI, or the bandwidth test");
  const LibrarySpec& library = library_of(cluster, backend);
  const Bandwidth nics = cluster.nic_bandwidth.value;
  return library.flow_cap ? std::min(nics, library.flow_cap->value * *table.streams) : nics;
}

// Returns the time of one message among many in flight.
Duration message_time(CollectiveSeries& series, Bytes size) {
  const Collective message = forecast(series, size);
  Duration transfer;
  for (const CommPhase& phase : message.program->phases)
    transfer += analytic_time(*phase.flows, *message.topology) * phase.times;
  return std::max(transfer, series.transport.message_overhead);
}

Duration copy_time(const HostCopies& copies, Bytes size, int ranks) {
  const auto elements = static_cast<std::size_t>(size.value() / sizeof(float));
  Duration sum;
  for (const StagingCopy& copy : staging_copies(chunk_layout(elements, ranks)).copies())
    sum += Bytes(static_cast<double>(copy.bytes)) * copy.times /
           (copy.to_host ? copies.pageable_to_host : copies.pageable_to_device).value;
  return sum;
}

}  // namespace

int nodes_of(const Measurement& table) {
  if (table.nodes) return *table.nodes;
  if (!table.gpus_per_node) return 1;
  return (table.ranks + *table.gpus_per_node - 1) / *table.gpus_per_node;
}

int nodes_of(const Measurement& table, const Cluster& cluster) {
  constexpr int largest_host = 16;
  const int nodes = nodes_of(table), most = cluster.gpus_per_node;
  const bool hosts = most > largest_host && table.ranks <= nodes * largest_host;
  return hosts ? (table.ranks + most - 1) / most : nodes;
}

MeasuredSeries series_of(const Measurement& table, const Cluster& cluster, Backend backend) {
  const Where where{table.provenance.source, 0, {}};
  MeasuredSeries series;
  const int nodes = checked_nodes(table, cluster, where);
  series.ranks = table.ranks;
  series.nodes = nodes;
  series.gpus_per_node = table.ranks / nodes;
  if (table.streams) {
    series.wire = wire_rate(table, cluster, backend, where);
    return series;
  }
  CollectiveSetting setting;
  setting.group.ranks = table.ranks;
  setting.group.per_node = series.gpus_per_node;
  setting.backend = backend;
  if (table.operation == Operation::compressed_allreduce && is_mpi(backend)) {
    add_exchange(series, table, cluster, setting);
    return series;
  }
  if (is_pair(table.operation) && !is_mpi(backend))
    fail_input(where, fmt::format("a {} of MPI does not measure NCCL: calibrate with --backend mpi",
                                  name_of(table.operation)));
  setting.op = is_pair(table.operation) ? Op::send_recv : collective_of(table, backend, where);
  setting.algorithm = table.algorithm.value_or("");
  setting.protocol = table.protocol.value_or("");
  if (table.operation == Operation::stream)
    series.message = prepare(cluster, setting);
  else
    series.parts.push_back({setting.op, curve_of(cluster, setting)});
  return series;
}

void reprice(MeasuredSeries& series, const Measurement& table, const Cluster& cluster,
             Backend backend, const std::shared_ptr<const Transport>& transport) {
  if (table.streams) {
    series.wire = wire_rate(table, cluster, backend, {table.provenance.source, 0, {}});
    return;
  }
  const ProcessGroup group{series.ranks, series.gpus_per_node};
  if (series.copies) series.copies = host_copies(cluster, load_device(cluster.device));
  if (series.message) {
    series.message->machines = machines_of(cluster, backend, group);
    series.message->transport = *transport;
  }
  for (MeasuredSeries::Part& part : series.parts)
    part.curve.reprice(transport, machines_of(cluster, backend, group));
}

bool counts(const Measurement& table, const Row& row) {
  if (row.size.value() <= 0 || row.time.ps() <= 0) return false;
  return !table.streams || row.size.value() >= small_below;
}

Duration forecast_time(MeasuredSeries& series, Bytes size) {
  if (series.wire.value() > 0) return size / series.wire;
  if (series.message) return message_time(*series.message, size);
  if (!series.exchange) return series.parts.front().curve.time(size);
  const auto messages = messages_of(size, series.ranks, series.copies.has_value());
  Duration sum;
  for (std::size_t i = 0; i < messages.size(); ++i)
    sum += series.parts[i].curve.time(messages[i].bytes);
  if (series.copies) sum += copy_time(*series.copies, size, series.ranks);
  return sum;
}

SeriesForecast forecast(MeasuredSeries& series, Bytes size) {
  if (series.wire.value() > 0 || series.message || series.exchange)
    return {forecast_time(series, size), {}};
  CollectiveCurve& curve = series.parts.front().curve;
  const auto [time, algorithm, protocol] = curve.forecast(size);
  return {time, {algorithm, protocol, curve.rival(size)}};
}

}  // namespace lambcast::validate
