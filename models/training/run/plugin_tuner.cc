#include "models/training/run/plugin_tuner.h"

#include <fmt/format.h>

#include <algorithm>

#include "topologies/cluster.h"

namespace lambcast {

std::optional<Finding> find_plugin_tuner(const Cluster& cluster, int nodes) {
  const LibrarySpec& nccl = cluster.nccl;
  const bool of_plugin = nccl.reported_latency.value > Duration() && nccl.nvls.has_value();
  const bool has_ll128 = std::any_of(nccl.protocols.begin(), nccl.protocols.end(),
                                     [](const ProtocolSpec& one) { return one.name == "LL128"; });
  if (nodes == 1 || !of_plugin || has_ll128) return std::nullopt;
  return Finding{
      Severity::note, "plugin-tuner",
      fmt::format("AWS's plugin uses LL128 for all-reduces of 30 MiB and more on Hopper. "
                  "nccl.protocols of {} leaves it out, so the fit holds only for the measured "
                  "layouts; try: calibrate with tables of yours, or list LL128 too",
                  cluster.name)};
}

}  // namespace lambcast
