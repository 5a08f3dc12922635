#include "experiments/output/plain_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace lambcast {
namespace {

struct PlainName {
  std::string_view key;
  std::string_view words;
};

// Whole keys come before last parts, since the first match is taken.
constexpr std::array names{
    PlainName{"gpus", "GPUs"},
    PlainName{"seq_len", "sequence length"},
    PlainName{"cluster.nic.bandwidth", "NIC bandwidth"},
    PlainName{"cluster.nic.burst", "NIC burst"},
    PlainName{"cluster.node.gpu_link", "GPU link bandwidth"},
    PlainName{"cluster.node.gpu_nic", "bandwidth from GPU to NIC"},
    PlainName{"cluster.node.host_link", "bandwidth from GPU to host"},
    PlainName{"cluster.node.host_memory", "host memory bandwidth"},
    PlainName{"cluster.fabric.oversubscription", "fabric oversubscription"},
    PlainName{"cluster.stack.compute_scale", "factor of GPU compute time"},
    PlainName{"cluster.stack.compute_spread", "spread of compute times"},
    PlainName{"cluster.stack.gpu_spread", "spread of equal GPUs"},
    PlainName{"cluster.stack.optimizer_scale", "factor of optimizer time"},
    PlainName{"cluster.host_copy.pageable_to_host", "copy to pageable memory for MPI"},
    PlainName{"cluster.host_copy.pageable_to_device", "copy from pageable memory for MPI"},
    PlainName{"cluster.host_copy.staged_by_mpi", "copies staged by MPI"},
    PlainName{"device.copy_bandwidth", "GPU memory bandwidth"},
    PlainName{"device.peak_half", "GPU peak in fp16 and bf16"},
    PlainName{"device.peak_single", "GPU peak in fp32"},
    PlainName{"device.rates.peak_fp8", "GPU peak in fp8"},
    PlainName{"device.rates.peak_fp4", "GPU peak in fp4"},
    PlainName{"device.rates.peak_vector", "GPU peak without matrix units"},
    PlainName{"device.rates.exponentials", "GPU rate of exponentials"},
    PlainName{"device.rates.kernel_start", "start of a kernel"},
    PlainName{"device.rates.share_half", "share of the peak, fp16 and bf16"},
    PlainName{"device.rates.share_single", "share of the peak, fp32"},
    PlainName{"device.rates.share_fp8", "share of the peak, fp8"},
    PlainName{"device.rates.share_attention", "share of the peak, attention"},
    PlainName{"device.matrix_efficiency", "share of the peak, products"},
    PlainName{"device.launch_overhead", "launch of a kernel"},
    PlainName{"device.framework_launch", "launch from the framework"},
    PlainName{"device.sync_overhead", "wait for the GPU"},
    PlainName{"device.forward_share", "forward share of compute"},
    PlainName{"device.pageable_d2h", "copy to pageable memory"},
    PlainName{"device.pageable_h2d", "copy from pageable memory"},
    PlainName{"device.pinned_d2h", "copy to pinned memory"},
    PlainName{"device.pinned_h2d", "copy from pinned memory"},
    PlainName{"nic_efficiency", "share of the NIC used"},
    PlainName{"link_efficiency", "share of GPU links used"},
    PlainName{"single_gpu_efficiency", "share used by one GPU a node"},
    PlainName{"tree_efficiency", "share used by trees"},
    PlainName{"all_to_all_efficiency", "share used by all-to-alls"},
    PlainName{"queue_ahead", "data queued ahead"},
    PlainName{"message_overhead", "cost of a message"},
    PlainName{"slice", "slice of a message"},
    PlainName{"flow_cap", "rate of one TCP stream"},
    PlainName{"alone_base", "start in one node"},
    PlainName{"alone_local_hop", "hop in one node"},
    PlainName{"base", "start of a collective"},
    PlainName{"local_hop", "hop inside a node"},
    PlainName{"network_hop", "hop between nodes"},
    PlainName{"efficiency", "share of the wire used"},
    PlainName{"node_cap", "most that a node reaches"},
    PlainName{"samples_per_s", "measured training curve"},
    PlainName{"time_us", "measured kernel times"},
    PlainName{"forward_us", "measured forward times"},
    PlainName{"backward_us", "measured backward times"}};

// Names that are written in capitals.
constexpr std::array<std::string_view, 6> capitals{"nccl", "nic", "gpu", "mpi", "tcp", "nvls"};

// Returns "NCCL LL: " for cluster.nccl.LL.base and "NCCL: " for cluster.nccl.slice, else nothing.
std::string library_of(std::string_view key) {
  for (const std::string_view library : {"nccl", "mpi"}) {
    const std::string prefix = fmt::format("cluster.{}.", library);
    if (!key.starts_with(prefix)) continue;
    const std::string_view rest = key.substr(prefix.size());
    const std::size_t dot = rest.find('.');
    std::string name = library == "nccl" ? "NCCL" : "MPI";
    if (dot != std::string_view::npos && rest.substr(0, dot) != library)
      name += fmt::format(" {}", rest.substr(0, dot));
    return name + ": ";
  }
  return "";
}

}  // namespace

std::string plain_name(std::string_view key) {
  const std::string_view last = key.substr(key.rfind('.') + 1);
  for (const PlainName& name : names)
    if (name.key == key || name.key == last) return library_of(key) + std::string(name.words);
  return plain_cost(key);
}

std::string plain_cost(std::string_view cost) {
  std::string out;
  while (!cost.empty()) {
    const std::size_t end = std::min(cost.find('_'), cost.size());
    std::string word(cost.substr(0, end));
    cost.remove_prefix(std::min(end + 1, cost.size()));
    if (std::ranges::find(capitals, word) != capitals.end())
      std::ranges::transform(word, word.begin(), [](char c) {
        return static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      });
    out += (out.empty() ? "" : " ") + word;
  }
  return out;
}

std::string name_with_key(std::string_view key) {
  const std::string name = plain_name(key);
  return name == key ? name : fmt::format("{} ({})", name, key);
}

}  // namespace lambcast
