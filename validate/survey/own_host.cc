#include "validate/survey/own_host.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <optional>
#include <system_error>

#include "models/device/profiled_rates.h"
#include "sim/base/printable.h"
#include "topologies/cluster.h"

namespace lambcast {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    entries.push_back(entry->path());
  std::ranges::sort(entries);
  return entries;
}

// Returns the first line of a file; empty if it is not readable.
std::string line_of(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

// Returns the number at the start of a text; 0 without one.
double number_of(const std::string& text) {
  double value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// Returns the value of a line such as "Model: \t\t NVIDIA H100 80GB HBM3".
std::string model_of(const fs::path& information) {
  std::ifstream stream(information);
  for (std::string line; std::getline(stream, line);)
    if (line.starts_with("Model:"))
      return line.substr(std::min(line.find_first_not_of(" \t", 6), line.size()));
  return {};
}

struct HostLink {
  double gbit_per_s = 0;
  std::string name;
  bool infiniband = false;
};

// Returns active ports; `rate` reads "400 Gb/sec (4X NDR)".
std::vector<HostLink> rdma_ports(const fs::path& root) {
  std::vector<HostLink> ports;
  for (const fs::path& nic : entries_of(root / "sys/class/infiniband"))
    for (const fs::path& port : entries_of(nic / "ports"))
      if (line_of(port / "state").find("ACTIVE") != std::string::npos)
        ports.push_back({number_of(line_of(port / "rate")), nic.filename(),
                         line_of(port / "link_layer") == "InfiniBand"});
  return ports;
}

// Returns the links of network cards, or of virtual interfaces if there is no card. `speed` is in
// Mbit/s, and -1 if it is unknown.
std::vector<HostLink> network_links(const fs::path& root) {
  std::vector<HostLink> cards, virtual_links;
  for (const fs::path& link : entries_of(root / "sys/class/net")) {
    const double speed = number_of(line_of(link / "speed"));
    if (speed <= 0 || line_of(link / "operstate") == "down" || fs::exists(link / "bridge"))
      continue;
    (fs::exists(link / "device") ? cards : virtual_links)
        .push_back({speed / 1e3, link.filename(), false});
  }
  return cards.empty() ? virtual_links : cards;
}

// Returns the memory that a name states, as in "A100-SXM4-80GB".
Bytes memory_in(const std::string& gpu) {
  const std::size_t unit = gpu.find("GB");
  std::size_t begin = unit == gpu.npos ? 0 : unit;
  while (begin > 0 && gpu[begin - 1] >= '0' && gpu[begin - 1] <= '9') --begin;
  const double gib = unit == gpu.npos ? 0 : number_of(gpu.substr(begin));
  return Bytes(static_cast<double>(1 << 30) * (gib > 0 ? gib : 80));
}

// Returns whether NVLink joins all GPUs of a host: names of GPUs on boards with switches.
bool has_nvlink(const std::string& gpu) {
  return std::ranges::any_of(
      std::initializer_list<const char*>{"SXM", "HBM3", "H200", "B200", "B300"},
      [&](const char* part) { return gpu.find(part) != gpu.npos; });
}

// The links of a GPU, as [node] has them.
std::string links_of(const std::string& gpu, const std::string& device) {
  for (const std::string& name : has_nvlink(gpu) ? cluster_names() : std::vector<std::string>{}) {
    const Cluster cluster = load_cluster(name, {});
    if (cluster.device != device || cluster.gpu_peers != GpuPeers::nvlink) continue;
    const auto assumed = [&](const char* key, const Sourced<Bandwidth>& rate) {
      return fmt::format(
          "{} = {{ value = \"{:.4g} GB/s\", kind = \"assumed\", source = \"{}\" }}\n", key,
          rate.value.value() * 1e-9, "as in the preset " + name);
    };
    return "gpu_peers = \"nvlink\"\n" + assumed("gpu_link", cluster.gpu_link) +
           assumed("gpu_nic", cluster.gpu_nic);
  }
  return "gpu_peers = \"pcie\"\ngpu_link = { value = \"9 GB/s\", kind = \"assumed\", source = \"as "
         "in "
         "the preset commodity-10gbe\" }\n";
}

// Rates that TCP and RDMA reach, as shares of the name plate: 9.4 of 10 Gbit/s (DeepSpeed#5766) and
// 49 of 50 GB/s (nccl-tests#309).
constexpr double reached_by_tcp = 0.94, reached_by_rdma = 0.98;

}  // namespace

OwnHost own_host(const fs::path& root) {
  OwnHost host;
  for (const fs::path& gpu : entries_of(root / "proc/driver/nvidia/gpus"))
    if (std::string name = model_of(gpu / "information"); !name.empty())
      host.gpus.push_back(printable(name));
  std::vector<HostLink> links = rdma_ports(root);
  host.rdma = !links.empty();
  if (links.empty()) links = network_links(root);
  const auto fastest = std::ranges::max_element(links, {}, &HostLink::gbit_per_s);
  if (fastest == links.end() || !(fastest->gbit_per_s > 0)) return host;
  host.nic = printable(fastest->name);
  host.gbit_per_s = fastest->gbit_per_s;
  host.infiniband = fastest->infiniband;
  // MPI and NCCL over TCP use one link unless they are told to use more.
  if (host.rdma)
    host.nics = static_cast<int>(std::ranges::count(links, host.gbit_per_s, &HostLink::gbit_per_s));
  return host;
}

DerivedCluster derived_cluster(const OwnHost& host, int ranks) {
  const std::string gpu = host.gpus.empty() ? "" : host.gpus.front();
  const std::optional<std::string> preset =
      gpu.empty() ? std::nullopt : preset_of_gpu(gpu, memory_in(gpu));
  const std::string device = preset.value_or("a100-80g");
  const std::string stands_for = preset        ? ""
                                 : gpu.empty() ? "the processor of a host without GPUs"
                                               : gpu;
  const int gpus = std::max(ranks, static_cast<int>(host.gpus.size()));
  const std::string source = host.nic.empty() ? "no speed is readable; NCCL assumes this rate"
                                              : "the speed of " + host.nic;
  const double reached = host.rdma ? reached_by_rdma : reached_by_tcp;
  DerivedCluster derived;
  derived.toml = fmt::format(
      "name = \"derived\"\ndescription = \"derived by lambcast survey from its first host\"\n"
      "device = \"{}\"\n{}\n[node]\ngpus = {}\n{}\n[nic]\ncount = {}\nnetwork = \"{}\"\n{}"
      "nominal = {{ value = \"{:g} Gbit/s\", kind = \"{}\", source = \"{}\" }}\n"
      "bandwidth = {{ value = \"{:.4g} Gbit/s\", kind = \"assumed\", source = \"{:g} % of it\" "
      "}}\n",
      device, stands_for.empty() ? "" : fmt::format("device_stands_for = '{}'\n", stands_for), gpus,
      links_of(gpu, device), host.nics, host.rdma ? "rdma" : "socket",
      host.rdma && host.infiniband ? "link_layer = \"infiniband\"\n" : "", host.gbit_per_s,
      host.nic.empty() ? "assumed" : "published", source, host.gbit_per_s * reached, 100 * reached);
  derived.sentence = fmt::format(
      "--cluster is not given; derived from this host: {}, {} process{} a node, {} at {:g} Gbit/s "
      "({})",
      gpu.empty() ? "no GPU"
      : preset    ? fmt::format("{} x {} ({})", host.gpus.size(), gpu, device)
                  : fmt::format("{} x {}, for which {} stands in", host.gpus.size(), gpu, device),
      ranks, ranks == 1 ? "" : "es",
      host.nic.empty() ? "a NIC" : fmt::format("{} x {}", host.nics, host.nic), host.gbit_per_s,
      source);
  return derived;
}

}  // namespace lambcast
