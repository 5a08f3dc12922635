#include "topologies/nccl_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace lambcast {
namespace {

using Gpu = NcclTuning::Gpu;

Gpu generation_of(std::string_view device) {
  if (device.starts_with("v") || device.starts_with("t4")) return Gpu::volta;
  if (device.starts_with("a")) return Gpu::ampere;
  return device.starts_with("b") || device.starts_with("gb") ? Gpu::blackwell : Gpu::hopper;
}

// Rate of all links of a GPU, by generation: 6, 12, 18 and 18 links at 20, 20, 20.6 and 40.1 GB/s
// (src/graph/topo.h).
constexpr double all_links_GBps[] = {120, 240, 370.8, 721.8};
// Rate of an x16 slot of PCIe, by GPU generation: PCIe 3, 4, 5 and 5.
constexpr double pcie_GBps[] = {12, 24, 48, 48};

}  // namespace

void refuse_idle_nvls(const Table& root, const Cluster& cluster) {
  if (!cluster.nccl.nvls || generation_of(cluster.device) >= Gpu::hopper) return;
  fail_input(root.table("nccl").where("nvls"),
             fmt::format("has no effect: NVLink SHARP begins with Hopper, and the device is {}",
                         cluster.device),
             "a cluster of H100 or later");
}

NcclTuning nccl_machine(const Cluster& cluster) {
  NcclTuning tuning;
  tuning.gpu = generation_of(cluster.device);
  tuning.minor = cluster.nccl.minor_version;
  tuning.nvlink = cluster.gpu_peers != GpuPeers::pcie;
  tuning.mesh = cluster.gpu_peers == GpuPeers::nvlink_mesh;
  const auto gpu = static_cast<std::size_t>(tuning.gpu);
  tuning.link_GBps = (tuning.nvlink ? all_links_GBps : pcie_GBps)[gpu];
  tuning.gpus_per_node = cluster.gpus_per_node;
  tuning.in_switch = cluster.nccl.nvls.has_value();
  tuning.amd = tuning.gpu == Gpu::ampere;  // most machines of that generation have AMD CPUs
  tuning.nics = cluster.nics;
  tuning.nic_GBps = cluster.nic_nominal.value.value() * 1e-9;
  tuning.nic_latency = cluster.nccl.reported_latency.value;
  tuning.sharp = cluster.nccl.sharp;
  tuning.min_ctas = cluster.nccl.min_ctas;
  tuning.max_ctas = cluster.nccl.max_ctas;
  tuning.threads = cluster.nccl.threads;
  tuning.ll128_threads = cluster.nccl.ll128_threads;
  tuning.tree_threshold = cluster.nccl.tree_threshold;
  const std::vector<std::string>& allowed = cluster.nccl.algorithms;
  const auto may = [&](std::string_view name) {
    return allowed.empty() || std::find(allowed.begin(), allowed.end(), name) != allowed.end();
  };
  tuning.ring = may("ring");
  tuning.tree = may("tree");
  tuning.nvls = may("nvls");
  tuning.nvls_tree = may("nvls_tree");
  tuning.collnet_direct = may("collnet_direct");
  tuning.collnet_chain = may("collnet_chain");
  const auto has = [&](std::string_view name) {
    const auto& all = cluster.nccl.protocols;
    return std::any_of(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
  };
  tuning.ll = has("LL");
  tuning.ll128 = has("LL128");
  tuning.simple = has("Simple");
  return tuning;
}

std::string why_sharp_is_idle(const Cluster& cluster, int gpus_per_node) {
  const NcclTuning tuning = nccl_machine(cluster);
  if (!tuning.sharp) return {};
  if (gpus_per_node > NcclTuning::most_of_collnet)
    return fmt::format("CollNet is for at most {} GPUs a node, and these are {}",
                       NcclTuning::most_of_collnet, gpus_per_node);
  if (tuning.minor < NcclTuning::first_with_collnet)
    return fmt::format("CollNet counts from NCCL 2.{} on, and nccl.version is older",
                       NcclTuning::first_with_collnet);
  if (!tuning.simple) return "CollNet runs under Simple alone, which nccl.protocols leaves out";
  const bool left_out = !tuning.collnet_direct && !tuning.collnet_chain && !tuning.nvls;
  return left_out ? "nccl.algorithms leaves out CollNet and NVLS" : "";
}

}  // namespace lambcast
