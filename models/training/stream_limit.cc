#include "models/training/stream_limit.h"

#include <fmt/format.h>

namespace lambcast {

std::optional<Bandwidth> stream_limit(const Cluster& cluster) {
  const LibrarySpec& nccl = cluster.nccl;
  if (cluster.network != NetworkKind::socket || !nccl.flow_cap) return std::nullopt;
  const Bandwidth streams = nccl.flow_cap->value * nccl.connections;
  const Bandwidth reached = cluster.nic_bandwidth.value * nccl.nic_efficiency.value;
  return streams < reached ? std::optional(streams) : std::nullopt;
}

std::optional<Finding> find_stream_limit(const Cluster& cluster, int nodes) {
  const std::optional<Bandwidth> limit = stream_limit(cluster);
  if (nodes == 1 || !limit) return std::nullopt;
  const LibrarySpec& nccl = cluster.nccl;
  return Finding{
      Severity::note, "stream-limit",
      fmt::format("NCCL fills a NIC of {} up to {}, what {} TCP stream{} to a peer carries "
                  "(nccl.flow_cap, {}): a faster NIC changes nothing, more streams do "
                  "(NCCL_SOCKET_NTHREADS x NCCL_NSOCKS_PERTHREAD, here nccl.connections)",
                  to_text_bits(cluster.nic_bandwidth.value), to_text_bits(*limit), nccl.connections,
                  nccl.connections == 1 ? "" : "s", name_of(nccl.flow_cap->provenance.kind))};
}

}  // namespace lambcast
