#include "topologies/collective_forecast.h"

#include <algorithm>

#include "kernels/layout.h"
#include "sim/collectives/compressed_exchange.h"

namespace lambcast {

CollectiveSeries prepare(const Cluster& cluster, const CollectiveSetting& setting) {
  const LibrarySpec& library = setting.mpi ? cluster.mpi : cluster.nccl;
  CollectiveSeries series;
  CollectiveRequest& request = series.request;
  request.op = setting.op;
  request.layout = {setting.ranks, setting.gpus_per_node,
                    std::min(nics_in_use(cluster, setting.gpus_per_node), setting.gpus_per_node),
                    false};
  request.library = library.library;
  request.algorithm = setting.algorithm;
  if (request.algorithm.empty() && setting.op == Op::all_reduce && request.layout.nodes() > 1)
    request.algorithm = library.all_reduce;
  request.protocol = setting.protocol;
  request.expand = setting.expand;
  series.machines = machines_of(cluster, library, request.layout.nodes(), setting.gpus_per_node);
  series.transport = transport_of(cluster, library, setting.mpi ? Endpoint::host : Endpoint::gpu);
  return series;
}

Collective forecast(CollectiveSeries& series, Bytes size) {
  series.request.size = size;
  return plan_collective(series.request, series.machines, series.transport);
}

std::vector<Collective> compressed_exchange(const Cluster& cluster, CollectiveSetting setting,
                                            Bytes size) {
  const auto elements = static_cast<std::size_t>(size.value() / 4);
  const ChunkLayout chunks = chunk_layout(elements, setting.ranks);
  const CompressedExchange exchange =
      compressed_exchange(static_cast<double>(chunks.padded), setting.ranks, setting.mpi);
  std::vector<Collective> collectives;
  for (const ExchangeMessage& message : exchange.messages()) {
    setting.op = message.op;
    setting.algorithm = message.algorithm;
    CollectiveSeries series = prepare(cluster, setting);
    collectives.push_back(forecast(series, message.bytes));
  }
  return collectives;
}

}  // namespace lambcast
