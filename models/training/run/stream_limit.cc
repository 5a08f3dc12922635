#include "models/training/run/stream_limit.h"

#include <fmt/format.h>

#include "sim/collectives/nccl_tuning.h"
#include "topologies/cluster.h"
#include "topologies/nccl_machine.h"

namespace lambcast {
namespace {

double streams_of_a_lane(const Cluster& cluster) {
  return cluster.nccl.connections *
         nccl_channels_of_a_lane(nccl_machine(cluster), cluster.gpus_per_node);
}

}  // namespace

std::optional<StreamLimit> stream_limit(const Cluster& cluster) {
  const LibrarySpec& nccl = cluster.nccl;
  if (cluster.network != NetworkKind::socket || !nccl.flow_cap) return std::nullopt;
  const Bandwidth streams = nccl.flow_cap->value * streams_of_a_lane(cluster);
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
      fmt::format(
          "NCCL's rings use at most {1} of this NIC's {0}: {2} TCP streams to a peer carry "
          "no more (nccl.flow_cap, {3}). For them {4}NIC beyond {5} is no faster{6}. Trees and "
          "exchanges have several peers. More streams carry more: NCCL_SOCKET_NTHREADS x "
          "NCCL_NSOCKS_PERTHREAD per channel, here nccl.connections",
          to_text_bits(cluster.nic_bandwidth.value), to_text_bits(limit->carried),
          streams_of_a_lane(cluster), name_of(nccl.flow_cap->provenance.kind),
          nic_rate_of(cluster) == NicRate::effective ? "an effective " : "a ",
          to_text_bits(limit->nic),
          nccl.nic_efficiency.value < 1
              ? fmt::format(" (of which NCCL uses {:.3g} %, nccl.nic_efficiency)",
                            100 * nccl.nic_efficiency.value)
              : "")};
}

}  // namespace lambcast
