#include "models/training/stream_limit.h"

#include <fmt/format.h>

#include "topologies/cluster.h"

namespace lambcast {

std::optional<StreamLimit> stream_limit(const Cluster& cluster) {
  const LibrarySpec& nccl = cluster.nccl;
  if (cluster.network != NetworkKind::socket || !nccl.flow_cap) return std::nullopt;
  const Bandwidth streams = nccl.flow_cap->value * nccl.connections;
  const Bandwidth nic = streams / nccl.nic_efficiency.value;
  return nic < cluster.nic_bandwidth.value ? std::optional(StreamLimit{streams, nic})
                                           : std::nullopt;
}

std::optional<Finding> find_stream_limit(const Cluster& cluster, int nodes) {
  const auto limit = stream_limit(cluster);
  if (nodes == 1 || !limit) return std::nullopt;
  const LibrarySpec& nccl = cluster.nccl;
  return Finding{
      Severity::note, "stream-limit",
      fmt::format("NCCL's rings fill a NIC of {} up to {}, what {} TCP stream{} to a peer carries "
                  "(nccl.flow_cap, {}): to them {}NIC beyond {} is no faster; trees and "
                  "exchanges have several peers, and more streams carry more "
                  "(NCCL_SOCKET_NTHREADS x NCCL_NSOCKS_PERTHREAD, here nccl.connections)",
                  to_text_bits(cluster.nic_bandwidth.value), to_text_bits(limit->carried),
                  nccl.connections, nccl.connections == 1 ? "" : "s",
                  name_of(nccl.flow_cap->provenance.kind),
                  nic_rate_of(cluster) == NicRate::effective ? "an effective " : "a ",
                  to_text_bits(limit->nic))};
}

}  // namespace lambcast
