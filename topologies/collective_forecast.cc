#include "topologies/collective_forecast.h"

#include <memory>
#include <utility>

#include "kernels/layout.h"
#include "sim/collectives/algorithms.h"
#include "sim/collectives/compressed_exchange.h"

namespace lambcast {

std::string forced_algorithm(const LibrarySpec& library, Op op, const ProcessGroup& group) {
  const bool asked = op == Op::all_reduce && group.nodes() > 1 && !library.all_reduce.empty();
  return asked && supports(library.all_reduce, op, group) ? library.all_reduce : "";
}

CollectiveSeries prepare(const Cluster& cluster, const CollectiveSetting& setting) {
  const LibrarySpec& library = library_of(cluster, setting.backend);
  CollectiveSeries series;
  CollectiveRequest& request = series.request;
  request.op = setting.op;
  request.group = setting.group;
  request.rules = library.rules;
  request.algorithm = setting.algorithm;
  if (request.algorithm.empty())
    request.algorithm = forced_algorithm(library, request.op, request.group);
  request.protocol = setting.protocol;
  request.expand = setting.expand;
  series.machines = machines_of(cluster, setting.backend, request.group);
  series.machines.keep(std::make_shared<LaidOuts>(), 0);
  series.transport = transport_of(cluster, setting.backend);
  return series;
}

Collective forecast(CollectiveSeries& series, Bytes size) {
  series.request.size = size;
  return plan_collective(series.request, series.machines, series.transport);
}

CollectiveCurve curve_of(const Cluster& cluster, const CollectiveSetting& setting) {
  CollectiveSeries series = prepare(cluster, setting);
  return {std::move(series.request), std::make_shared<const Transport>(std::move(series.transport)),
          std::move(series.machines)};
}

std::vector<Collective> compressed_exchange(CollectiveSeries& series, Backend backend, Bytes size) {
  CollectiveRequest request = series.request;
  const auto elements = static_cast<std::uint64_t>(size.value() / 4);
  const ChunkLayout chunks = chunk_layout(elements, request.group.ranks);
  const CompressedExchange exchange =
      compressed_exchange(static_cast<double>(chunks.padded), request.group.ranks, backend);
  std::vector<Collective> collectives;
  for (const ExchangeMessage& message : exchange.messages()) {
    request.op = message.op;
    request.algorithm = message.algorithm;
    request.size = message.bytes;
    collectives.push_back(plan_collective(request, series.machines, series.transport));
  }
  return collectives;
}

}  // namespace lambcast
