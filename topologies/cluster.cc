#include "topologies/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <string_view>

#include "embedded/cluster_files.h"
#include "sim/base/error.h"
#include "sim/base/file.h"
#include "sim/base/overrides.h"
#include "sim/base/range.h"
#include "topologies/fabric.h"
#include "topologies/library_defaults.h"
#include "topologies/nccl_machine.h"

namespace lambcast {
namespace {

// A measured rate that was rounded may stand a little above the name plate.
constexpr double rounding = 1.01;

constexpr Range<double> up_to_one{1e-4, 1}, any_factor{0.01, 100};

Sourced<double> factor(const Table& table, std::string_view key, const Range<double>& range,
                       double otherwise = 1) {
  return get_within(table, key, range, {otherwise, {Kind::assumed, "default"}});
}

// Replaces what the file overrides in the library's own constants.
void override_protocol(const Table& table, ProtocolSpec& protocol) {
  const auto time = [&](const char* key, Sourced<Duration>& ring, Sourced<Duration>& tree) {
    if (const auto value = find_within(table, key, any_latency)) ring = tree = *value;
    if (const auto value = find_within(table, std::string("tree_") + key, any_latency))
      tree = *value;
  };
  time("base", protocol.base, protocol.tree_base);
  time("local_hop", protocol.local_hop, protocol.tree_local_hop);
  time("network_hop", protocol.network_hop, protocol.tree_network_hop);
  if (table.has("efficiency")) protocol.efficiency = factor(table, "efficiency", up_to_one);
  if (const auto value = table.find<Bytes>("largest")) protocol.largest = value;
  // A description that says nothing of a single node means it to be as beside others.
  if (table.has("base")) protocol.alone_base.reset();
  if (table.has("local_hop")) protocol.alone_local_hop.reset();
  if (const auto value = find_within(table, "alone_base", any_latency)) protocol.alone_base = value;
  if (const auto value = find_within(table, "alone_local_hop", any_latency))
    protocol.alone_local_hop = value;
  if (const auto value = find_within(table, "node_cap", any_bandwidth)) protocol.node_cap = value;
}

// Leaves only the protocols that the file lists, where it lists any.
void choose_protocols(const Table& table, std::vector<ProtocolSpec>& protocols) {
  if (!table.has("protocols")) return;
  std::vector<std::string> names;
  for (const ProtocolSpec& protocol : protocols) names.push_back(protocol.name);
  const auto listed = table.get<std::vector<std::string>>("protocols");
  for (const std::string& name : listed)
    if (std::find(names.begin(), names.end(), name) == names.end())
      fail_unknown(table.where("protocols"), "protocol", name, names);
  if (listed.empty()) fail_input(table.where("protocols"), "names none");
  std::erase_if(protocols, [&](const ProtocolSpec& protocol) {
    return std::find(listed.begin(), listed.end(), protocol.name) == listed.end();
  });
}

// "2.19" to 19.
int nccl_minor_version(const Table& table) {
  const auto text = table.get<std::string>("version");
  int minor = 0;
  const bool read =
      text.starts_with("2.") &&
      std::from_chars(text.data() + 2, text.data() + text.size(), minor).ec == std::errc();
  if (!read || minor < NcclTuning::oldest)
    fail_input(table.where("version"), fmt::format("'{}' is no version of NCCL known here", text),
               fmt::format("2.{} and later", NcclTuning::oldest));
  return minor;
}

std::optional<NvlsSpec> decode_nvls(const Table& table, const Priors& priors) {
  if (table.keys().empty()) return std::nullopt;
  const bool learned = priors.rdma.of.contains("nvls.base");
  const Provenance from{
      learned ? Kind::assumed : Kind::published,
      learned ? source_of(priors, NetworkKind::rdma) : "NCCL src/graph/tuning.cc (2.28, 2.30)"};
  const auto time = [&](const char* key, double us) {
    const double typical = priors.rdma.typical(std::string("nvls.") + key);
    return get_within(table, key, any_latency, {Duration::microseconds(us * typical), from});
  };
  return NvlsSpec{time("base", 25), time("network_hop", 20.9),
                  factor(table, "efficiency", {1e-4, 2}, 0.85)};
}

// What a library's section says of the machine around it.
struct Surroundings {
  NetworkKind network;
  bool pcie_peers;
  bool link_known;  // somebody measured or fitted what the GPUs' links carry
  NicRate nic_rate;
  const Priors& priors;
};

// A share of a rate: typical is what it is on other fabrics.
Sourced<double> typical_share(const Table& table, std::string_view key, const Range<double>& range,
                              const Surroundings& around, std::string_view prior) {
  const Priors::OfKind& priors = around.priors.on(around.network);
  if (table.has(key) || !priors.of.contains(prior)) return factor(table, key, range);
  return {priors.typical(prior), {Kind::assumed, source_of(around.priors, around.network)}};
}

LibrarySpec decode_library(const Table& table, Library standard, const Surroundings& around) {
  const auto& [network, pcie_peers, link_known, nic_rate, priors] = around;
  LibrarySpec spec;
  spec.library = standard;
  if (standard != Library::nccl && table.has("library"))
    spec.library =
        static_cast<Library>(1 + table.choice("library", {"openmpi-4.0", "openmpi-4.1"}));
  const bool nccl = standard == Library::nccl;
  constexpr Range<double> of_nic{1e-4, 100}, of_link{1e-4, 2};
  spec.nic_efficiency = factor(table, "nic_efficiency", of_nic);
  spec.link_efficiency = {1, {Kind::assumed, "default"}};
  spec.single_gpu_efficiency = factor(table, "single_gpu_efficiency", up_to_one);
  spec.tree_efficiency = factor(table, "tree_efficiency", up_to_one);
  if (nccl) {
    spec.nic_efficiency =
        typical_share(table, "nic_efficiency", of_nic, around,
                      nic_rate == NicRate::nominal ? "nic_efficiency" : "effective_nic_efficiency");
    spec.link_efficiency =
        link_known ? factor(table, "link_efficiency", of_link)
                   : typical_share(table, "link_efficiency", of_link, around, "link_efficiency");
    spec.single_gpu_efficiency =
        typical_share(table, "single_gpu_efficiency", up_to_one, around, "single_gpu_efficiency");
    spec.tree_efficiency =
        typical_share(table, "tree_efficiency", up_to_one, around, "tree_efficiency");
  }
  spec.slice = find_within(table, "slice", Range<Bytes>{Bytes(1), Bytes(1e12)});
  const Priors::OfKind& typical = priors.on(network);
  if (nccl && !spec.slice && typical.of.contains("slice"))
    spec.slice = {Bytes(0x1p20) * typical.typical("slice"),
                  {Kind::assumed, source_of(priors, network)}};
  if (standard != Library::nccl)
    spec.queue_ahead =
        get_within(table, "queue_ahead", Range<Bytes>{Bytes(0), Bytes(1e12)}, queue_ahead(network));
  spec.message_overhead = get_within(
      table, "message_overhead", any_latency,
      {Duration::microseconds(1),
       {Kind::published, "network post overhead of 1 us on Intel (NCCL src/graph/tuning.cc)"}});
  spec.flow_cap = find_within(table, "flow_cap", any_bandwidth);
  if (nccl && !spec.flow_cap && typical.of.contains("flow_cap"))
    spec.flow_cap = {Bandwidth(1e9) * typical.typical("flow_cap"),
                     {Kind::assumed, source_of(priors, network)}};
  if (table.has("connections"))
    spec.connections = static_cast<int>(table.integer("connections", 1, 1024));
  if (const auto forced = table.find<Sourced<std::string>>("all_reduce")) {
    spec.all_reduce = forced->value;
    spec.all_reduce_from = forced->provenance;
  }
  if (standard == Library::nccl && table.has("version"))
    spec.minor_version = nccl_minor_version(table);
  spec.protocols = nccl ? nccl_protocols(network, pcie_peers, priors) : mpi_protocols(network);
  const bool has_ll128 = std::any_of(spec.protocols.begin(), spec.protocols.end(),
                                     [](const ProtocolSpec& one) { return one.name == "LL128"; });
  if (standard == Library::nccl && !has_ll128 && table.has("LL128"))
    fail_input(table.where("LL128"),
               "NCCL has LL128 over NVLink and RDMA only: what was found with them says nothing of "
               "this machine, start from a preset that is more like it");
  choose_protocols(table, spec.protocols);
  for (ProtocolSpec& protocol : spec.protocols)
    override_protocol(table.table(protocol.name), protocol);
  if (standard == Library::nccl) spec.nvls = decode_nvls(table.table("nvls"), priors);
  return spec;
}

std::optional<PortQueueSpec> decode_port_queue(const Table& nic, NetworkKind network) {
  const auto depth = find_within(nic, "port_queue", Range<Bytes>{Bytes(1), Bytes(1e12)});
  if (!depth) return std::nullopt;
  if (network != NetworkKind::socket)
    fail_input(nic.where("port_queue"), "only TCP loses packets there: needs network = \"socket\"");
  return PortQueueSpec{
      *depth, get_within(nic, "rto_min", any_latency,
                         {Duration::microseconds(200e3),
                          {Kind::published,
                           "Linux include/net/tcp.h, TCP_RTO_MIN; ip-route(8) can lower it"}})};
}

constexpr std::int64_t max_places = 65536;  // of a torus; as many nodes as a cluster may have

FabricSpec decode_fabric(const Table& table) {
  FabricSpec spec;
  const std::vector<std::string> kinds{"single-switch", "fat-tree", "rail-optimised", "torus",
                                       "dragonfly"};
  if (table.has("kind")) spec.kind = static_cast<FabricKind>(table.choice("kind", kinds));
  spec.oversubscription = {
      1,
      {Kind::assumed, spec.kind == FabricKind::torus
                          ? "a torus, every cable as fast as the NICs of a node"
                          : "a single switch, which blocks nothing"}};
  if (spec.kind == FabricKind::torus) {
    std::int64_t places = 1;
    for (const std::int64_t length : table.get<std::vector<std::int64_t>>("dimensions")) {
      if (length < 1 || length > max_places || (places *= length) > max_places)
        fail_input(table.where("dimensions"), fmt::format("{} is out of range", length),
                   fmt::format("1 or more each, {} places in all", max_places));
      spec.dimensions.push_back(static_cast<int>(length));
    }
  } else if (spec.kind != FabricKind::single_switch) {
    spec.nodes_per_leaf = static_cast<int>(table.integer("nodes_per_leaf", 1, 65536));
    spec.oversubscription = factor(table, "oversubscription", {0.01, 1000});
    if (spec.kind == FabricKind::dragonfly)
      spec.routers_per_group = static_cast<int>(table.integer("routers_per_group", 1, 4096));
  }
  return spec;
}

StackSpec decode_stack(const Table& table) {
  StackSpec spec;
  const std::vector<std::string> implementations{"deepspeed", "nvidia"};
  spec.implementation = table.has("implementation")
                            ? implementations[table.choice("implementation", implementations)]
                            : "deepspeed";
  spec.compute_scale = factor(table, "compute_scale", any_factor);
  spec.optimizer_scale = factor(table, "optimizer_scale", any_factor);
  if (const auto adam = table.find<Sourced<std::string>>("adam")) {
    const std::vector<std::string> words{"fused", "unfused"};
    if (std::find(words.begin(), words.end(), adam->value) == words.end())
      fail_unknown(table.where("adam"), "value", adam->value, words);
    spec.unfused_adam = adam->value == "unfused";
    spec.unfused_adam_from = adam->provenance;
  }
  const std::vector<std::string> backends{"nccl", "mpi", "compressed"};
  if (table.has("backend")) spec.backend = backends[table.choice("backend", backends)];
  spec.cuda_aware = table.get_or<bool>("cuda_aware", false);
  return spec;
}

// "--set nic.bandwidth" alone asks about another NIC, whatever the name plate of this one says.
void raise_name_plate(Table& table, const Overrides& overrides) {
  const auto of = [&](std::string_view key) {
    return std::ranges::find(overrides, key, &Overrides::value_type::first);
  };
  const auto bandwidth = of("nic.bandwidth");
  if (bandwidth == overrides.end() || of("nic.nominal") != overrides.end()) return;
  const Table nic = table.table("nic");
  nic.keys();  // judged where the whole description is read
  if (nic.has("nominal") &&
      nic.get<Sourced<Bandwidth>>("bandwidth").value > nic.get<Sourced<Bandwidth>>("nominal").value)
    table.set("nic.nominal", bandwidth->second, "--set cluster.nic.bandwidth");
}

// Whether forecasts of the library that was measured are the same without this override.
bool leaves_calibration(std::string_view key, bool mpi) {
  const auto concerns = [&](std::string_view part) {
    return key == part || (key.starts_with(part) && key[part.size()] == '.');
  };
  static constexpr std::string_view elsewhere[] = {
      "name",      "description", "device",      "usd_per_gpu_hour",
      "max_nodes", "stack",       "calibration", "nic.nominal"};
  static constexpr std::string_view of_mpi[] = {"mpi", "host_copy", "node.host_link"};
  return std::any_of(std::begin(elsewhere), std::end(elsewhere), concerns) ||
         (mpi ? concerns("nccl") : std::any_of(std::begin(of_mpi), std::end(of_mpi), concerns));
}

}  // namespace

Cluster decode_cluster(const Table& root, const std::string& origin, const Priors& priors) {
  Cluster cluster;
  cluster.origin = origin;
  cluster.name = root.get<std::string>("name");
  cluster.description = root.get_or<std::string>("description", "");
  cluster.device = root.get<std::string>("device");
  const Table node = root.table("node");
  cluster.gpus_per_node = static_cast<int>(node.integer("gpus", 1, 1024));
  cluster.gpu_peers =
      static_cast<GpuPeers>(node.choice("gpu_peers", {"pcie", "nvlink", "nvlink-mesh"}));
  const bool pcie_peers = cluster.gpu_peers == GpuPeers::pcie;
  cluster.gpu_link = get_within(node, "gpu_link", any_bandwidth);
  cluster.gpu_nic = pcie_peers ? cluster.gpu_link : get_within(node, "gpu_nic", any_bandwidth);
  cluster.host_link =
      get_within(node, "host_link", any_bandwidth,
                 {Bandwidth(5e9), {Kind::assumed, "shared-memory MPI between processes"}});
  const Table nic = root.table("nic");
  cluster.nics = static_cast<int>(nic.integer("count", 1, 256));
  cluster.nic_nominal = get_within(nic, "nominal", any_bandwidth);
  cluster.nic_bandwidth = get_within(nic, "bandwidth", any_bandwidth);
  if (cluster.nic_bandwidth.value > cluster.nic_nominal.value * rounding)
    fail_input(nic.where("bandwidth"),
               fmt::format("{} pass through a NIC of {}", to_text_bits(cluster.nic_bandwidth.value),
                           to_text_bits(cluster.nic_nominal.value)),
               "up to nic.nominal");
  cluster.nic_burst = get_within(nic, "burst", Range<Bytes>{Bytes(0), Bytes(1e12)},
                                 {Bytes(0), {Kind::assumed, "not shaped"}});
  const auto network = static_cast<NetworkKind>(nic.choice("network", {"rdma", "socket"}));
  cluster.port_queue = decode_port_queue(nic, network);
  cluster.fabric = decode_fabric(root.table("fabric"));
  if (root.has("max_nodes"))
    cluster.max_nodes = static_cast<int>(root.integer("max_nodes", 1, 65536));
  const Kind link = cluster.gpu_link.provenance.kind;
  const Surroundings around{network, pcie_peers, link == Kind::measured || link == Kind::fitted,
                            nic_rate_of(cluster), priors};
  cluster.network = network;
  cluster.nccl = decode_library(root.table("nccl"), Library::nccl, around);
  cluster.mpi = decode_library(root.table("mpi"), Library::openmpi_4_1, around);
  const Table copy = root.table("host_copy");
  cluster.host_copy = {find_within(copy, "pageable_to_host", any_bandwidth),
                       find_within(copy, "pageable_to_device", any_bandwidth),
                       find_within(copy, "staged_by_mpi", any_bandwidth)};
  cluster.stack = decode_stack(root.table("stack"));
  cluster.usd_per_gpu_hour = find_within(root, "usd_per_gpu_hour", Range<double>{0, 10'000});
  cluster.calibration = decode_calibration(root.table("calibration"));
  root.finish();
  return cluster;
}

std::vector<std::string> cluster_names() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : cluster_files()) {
    const auto slash = file.name.rfind('/');
    std::string name(file.name.substr(slash == std::string_view::npos ? 0 : slash + 1));
    names.push_back(name.substr(0, name.size() - std::string_view(".toml").size()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string cluster_text(const std::string& name) {
  for (const EmbeddedFile& file : cluster_files())
    if (file.name.ends_with("/" + name + ".toml")) return std::string(file.text);
  fail_unknown({"", 0, "--cluster"}, "cluster", name, cluster_names());
}

Cluster load_cluster(const std::string& name_or_path, const Overrides& overrides) {
  return load_cluster(is_path(name_or_path)
                          ? Table::parse(read_file(name_or_path), name_or_path)
                          : Table::parse(cluster_text(name_or_path), name_or_path + ".toml"),
                      name_or_path, overrides);
}

Cluster load_cluster(Table table, const std::string& name_or_path, const Overrides& overrides) {
  std::vector<std::string> flags;
  for (const auto& [key, value] : overrides) {
    flags.push_back(fmt::format("--set cluster.{}", key));
    table.set(key, value, flags.back());
  }
  raise_name_plate(table, overrides);
  const std::string preset = is_path(name_or_path) ? "" : name_or_path + ".toml";
  Cluster cluster =
      decode_overridden(preset, flags, [&] { return decode_cluster(table, name_or_path); });
  if (!cluster.calibration) return cluster;
  for (const auto& [key, value] : overrides)
    if (!leaves_calibration(key, cluster.calibration->mpi)) cluster.uncalibrated_by.push_back(key);
  if (!cluster.uncalibrated_by.empty()) cluster.calibration.reset();
  return cluster;
}

Transport transport_of(const Cluster& cluster, const LibrarySpec& library, Endpoint endpoint) {
  Transport transport;
  transport.endpoint = endpoint;
  transport.message_overhead = library.message_overhead.value;
  transport.queue_ahead = library.queue_ahead.value;
  transport.burst = cluster.nic_burst.value / cluster.nic_bandwidth.value;
  if (cluster.port_queue)
    transport.port_queue = {cluster.port_queue->depth.value, cluster.port_queue->rto_min.value};
  if (library.slice) transport.slice = library.slice->value;
  if (library.flow_cap) transport.flow_cap = library.flow_cap->value;
  transport.connections = library.connections;
  if (library.library == Library::nccl) transport.tuning = nccl_machine(cluster);
  for (const ProtocolSpec& spec : library.protocols) {
    Protocol protocol{
        spec.name,
        {spec.base.value, spec.local_hop.value, spec.network_hop.value},
        {spec.tree_base.value, spec.tree_local_hop.value, spec.tree_network_hop.value},
        spec.efficiency.value};
    if (spec.largest) protocol.largest = *spec.largest;
    if (spec.alone_base || spec.alone_local_hop)
      protocol.alone = HopLatency{spec.alone_base.value_or(spec.base).value,
                                  spec.alone_local_hop.value_or(spec.local_hop).value, Duration()};
    if (spec.node_cap) protocol.node_cap = spec.node_cap->value;
    protocol.tree_efficiency = library.tree_efficiency.value;
    protocol.slices = spec.slices;
    if (library.nvls && spec.name == "Simple")
      protocol.in_switch =
          InSwitch{{library.nvls->base.value, Duration(), library.nvls->network_hop.value},
                   library.nvls->efficiency.value};
    transport.protocols.push_back(std::move(protocol));
  }
  return transport;
}

NicRate nic_rate_of(const Cluster& cluster) {
  const bool known = cluster.nic_bandwidth.provenance.kind != Kind::assumed &&
                     cluster.nic_bandwidth.value < cluster.nic_nominal.value * 0.999;
  return known ? NicRate::effective : NicRate::nominal;
}

CalibratedInterval interval_of(const Cluster& cluster, bool mpi, Op op, Bytes size,
                               const ProcessGroup& group, Duration forecast) {
  const Typical typical = mpi                                    ? Typical::none
                          : cluster.network == NetworkKind::rdma ? Typical::rdma
                                                                 : Typical::socket;
  if (!cluster.calibration || cluster.calibration->mpi != mpi || group.siblings > 1)
    return uncalibrated_interval(size, group.ranks, nic_rate_of(cluster), typical, forecast);
  return interval_of(*cluster.calibration, op, size, group.ranks, group.nodes(),
                     nic_rate_of(cluster), typical, forecast);
}

std::string without_calibration(const Cluster& cluster) {
  if (cluster.uncalibrated_by.empty()) return "not calibrated";
  return fmt::format("not calibrated (--set changed {})", fmt::join(cluster.uncalibrated_by, ", "));
}

int nics_in_use(const Cluster& cluster, int gpus_per_node) {
  return std::max(1, cluster.nics * gpus_per_node / cluster.gpus_per_node);
}

Machines machines_of(const Cluster& cluster, const LibrarySpec& library,
                     const ProcessGroup& group) {
  Bandwidth gpu_link = cluster.gpu_link.value;
  if (cluster.gpu_peers == GpuPeers::nvlink_mesh && cluster.gpus_per_node > 1)
    gpu_link = gpu_link * (std::max(1.0, group.per_node - 1.0) / (cluster.gpus_per_node - 1));
  gpu_link = gpu_link * library.link_efficiency.value;
  const bool pcie = cluster.gpu_peers == GpuPeers::pcie;
  const Bandwidth gpu_nic = cluster.gpu_nic.value;
  const int nics = nics_in_use(cluster, group.slots());
  Bandwidth nic = cluster.nic_bandwidth.value * library.nic_efficiency.value;
  // Where several of them share a NIC, one fills it while another waits.
  if (group.per_node == 1 && (group.siblings == 1 || nics >= group.slots()))
    nic = nic * library.single_gpu_efficiency.value;
  return {{group.slots(), nics, gpu_link, pcie,
           pcie ? gpu_nic * library.link_efficiency.value : gpu_nic, nic, cluster.host_link.value},
          group.node_span(),
          make_fabric(cluster.fabric),
          nodes_alike(cluster.fabric, group.node_span())};
}

}  // namespace lambcast
