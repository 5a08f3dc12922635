#include "topologies/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>

#include "embedded/cluster_files.h"
#include "sim/base/error.h"
#include "sim/base/file.h"
#include "sim/base/overrides.h"
#include "sim/base/range.h"
#include "topologies/cluster_keys.h"
#include "topologies/companions.h"
#include "topologies/fabric.h"
#include "topologies/foreign_description.h"
#include "topologies/implied_keys.h"
#include "topologies/library.h"
#include "topologies/library_defaults.h"
#include "topologies/nccl_machine.h"
#include "topologies/nic_limit.h"

namespace lambcast {
namespace {

// A rounded measured rate may be slightly above the nominal rate.
constexpr double rounding = 1.01;

// Rate of a channel, and the share of a NIC's rate that additional channels reach. Nodes of 8 H100
// with 8 NICs of 50 GB/s moved 321 GB/s with 16 channels and 391 with 24 (nccl-tests#309).
constexpr Bandwidth channel_rate(321e9 / 16);
constexpr double most_of_nic = 391.0 / 400;

// Share of the NICs' rate that a tree of two nodes reaches over TCP: it is no faster than a ring,
// although half the bytes pass the NIC. Three pairs of nodes reached 0.34 to 0.55; the table of
// alps-gh200-tcp sets it (95 % interval 0.28 to 1).
constexpr double tree_over_two_sockets = 0.55;

constexpr Range<double> any_factor{0.01, 100};

// An update of 8.03e9 weights, 48 bytes each, took 1.27 s of a 3.18 s step, and 1.43 s of 2.69 s.
constexpr Bandwidth updates_on_host(335e9);
constexpr const char* of_updates =
    "as on nodes of 8 H200 and of 8 B200: Llama 3.1 8B with ZeRO-3 and AdamW on the host, 141 and "
    "167 TFLOPS a GPU (stas00/ml-engineering, insights/when-to-upgrade-gpus)";

std::optional<PortQueueSpec> decode_port_queue(const Table& nic, NetworkKind network) {
  const auto depth = find_within(nic, "port_queue", Range<Bytes>{Bytes(1), Bytes(1e12)});
  if (!depth) return std::nullopt;
  if (network != NetworkKind::socket)
    fail_input(nic.where("port_queue"), "only TCP drops packets there: needs network = \"socket\"");
  return PortQueueSpec{
      *depth, get_within(nic, "rto_min", any_latency,
                         {Duration::microseconds(200e3),
                          {Kind::published,
                           "Linux include/net/tcp.h, TCP_RTO_MIN; ip-route(8) can lower it"}})};
}

constexpr std::int64_t max_places = 65536;  // limit of a torus

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
  } else if (spec.kind == FabricKind::single_switch) {
    for (const char* key : {"oversubscription", "nodes_per_leaf"})
      if (table.has(key))
        fail_input(table.where(key), "applies to several switches; this fabric is a single one",
                   "with fabric.kind = \"fat-tree\", \"rail-optimised\" or \"dragonfly\"");
  } else {
    spec.nodes_per_leaf = static_cast<int>(table.integer("nodes_per_leaf", 1, 65536));
    spec.oversubscription = factor(table, "oversubscription", {0.01, 1000});
    if (spec.kind == FabricKind::dragonfly)
      spec.routers_per_group = static_cast<int>(table.integer("routers_per_group", 1, 4096));
  }
  return spec;
}

std::optional<double> set_by_figure(const Sourced<double>& scale) {
  const Kind kind = scale.provenance.kind;
  if (kind != Kind::measured && kind != Kind::fitted) return std::nullopt;
  return scale.value;
}

StackSpec decode_stack(const Table& table) {
  StackSpec spec;
  const std::vector<std::string> implementations{"deepspeed", "nvidia"};
  spec.implementation = table.has("implementation")
                            ? implementations[table.choice("implementation", implementations)]
                            : "deepspeed";
  spec.compute_scale = factor(table, "compute_scale", any_factor);
  spec.compute_spread = factor(table, "compute_spread", {0, 1}, 0);
  spec.gpu_spread = factor(table, "gpu_spread", {0, 1}, 0);
  spec.optimizer_scale = factor(table, "optimizer_scale", any_factor);
  spec.own_compute_scale = set_by_figure(spec.compute_scale);
  spec.scale_program = table.get_or<std::string>("program", spec.implementation);
  spec.own_optimizer_scale = set_by_figure(spec.optimizer_scale);
  if (const auto adam = table.find<Sourced<std::string>>("adam")) {
    const std::vector<std::string> words{"fused", "unfused"};
    if (std::find(words.begin(), words.end(), adam->value) == words.end())
      fail_unknown(table.where("adam"), "value", adam->value, words);
    spec.unfused_adam = adam->value == "unfused";
    spec.unfused_adam_from = adam->provenance;
  }
  if (const auto release = table.find<Sourced<std::string>>("deepspeed"))
    spec.deepspeed = {parse_version(release->value, table.where("deepspeed")), release->provenance};
  const bool cuda_aware = table.get_or<bool>("cuda_aware", false);
  if (table.has("backend"))
    spec.backend =
        backend_of(backend_words()[table.choice("backend", backend_words())], cuda_aware);
  return spec;
}

// "--set nic.bandwidth" without "nic.nominal" describes another NIC, with that rate as its nominal
// rate. Returns the nominal rate of the described NIC if it is lower.
std::optional<Bandwidth> raise_name_plate(Table& table, const Overrides& overrides) {
  const auto of = [&](std::string_view key) {
    return std::ranges::find(overrides, key, &Overrides::value_type::first);
  };
  const auto bandwidth = of("nic.bandwidth");
  if (bandwidth == overrides.end() || of("nic.nominal") != overrides.end()) return std::nullopt;
  const Table nic = table.table("nic");
  if (!nic.has("nominal")) return std::nullopt;
  const Bandwidth plate = nic.get<Sourced<Bandwidth>>("nominal").value;
  if (nic.get<Sourced<Bandwidth>>("bandwidth").value <= plate) return std::nullopt;
  table.set("nic.nominal", bandwidth->second, "--set cluster.nic.bandwidth");
  return plate;
}

NicRate rate_of(const Sourced<Bandwidth>& reached, Bandwidth nominal) {
  switch (reached.provenance.kind) {
    case Kind::measured:
    case Kind::fitted:
      return NicRate::effective;
    case Kind::published:  // the nominal rate is published too
      return reached.value < nominal * 0.999 ? NicRate::effective : NicRate::nominal;
    case Kind::assumed:
      break;
  }
  return NicRate::nominal;
}

bool measures(const Provenance& from) {
  return from.kind == Kind::measured || from.kind == Kind::fitted;
}

// Returns the evidence that still applies after overrides. So a NIC that is set to a higher rate
// does not become slower for a library that reaches a larger share of an effective rate, and links
// keep the share of a measured rate.
Evidence evidence_of(const Table& description, const Overrides& overrides) {
  const auto sets = [&](std::string_view key) {
    return std::ranges::find(overrides, key, &Overrides::value_type::first) != overrides.end();
  };
  Evidence kept;
  const Table nic = description.table("nic"), node = description.table("node");
  if (sets("nic.bandwidth") && nic.has("bandwidth") && nic.has("nominal"))
    kept.nic = rate_of(nic.get<Sourced<Bandwidth>>("bandwidth"),
                       nic.get<Sourced<Bandwidth>>("nominal").value);
  if (sets("node.gpu_link") && node.has("gpu_link"))
    kept.link = measures(node.get<Sourced<Bandwidth>>("gpu_link").provenance);
  return kept;
}

// Checks that NCCL's share of a NIC does not exceed its nominal rate. (MPI's share may, since it
// counts several streams.)
void check_nic_efficiency(const Cluster& cluster, const Overrides& overrides) {
  constexpr const char* key = "nccl.nic_efficiency";
  if (std::ranges::find(overrides, key, &Overrides::value_type::first) == overrides.end()) return;
  const double share = cluster.nccl.nic_efficiency.value;
  const double most = cluster.nic_nominal.value / cluster.nic_bandwidth.value * rounding;
  if (share > most)
    fail_input(
        {"", 0, fmt::format("--set cluster.{}", key)},
        fmt::format("{0:.4g} is out of range: {0:.4g} times {1} is more than the NIC's nominal {2}",
                    share, to_text_bits(cluster.nic_bandwidth.value),
                    to_text_bits(cluster.nic_nominal.value)),
        fmt::format("up to {:.3g}", most));
}

// Returns the protocol of a spec, with the library's factors that apply to all protocols.
Protocol protocol_of(const ProtocolSpec& spec, const LibrarySpec& library, const Cluster& cluster) {
  Protocol protocol{spec.name,
                    {spec.base.value, spec.local_hop.value, spec.network_hop.value},
                    {spec.tree_base.value, spec.tree_local_hop.value, spec.tree_network_hop.value},
                    spec.efficiency.value};
  if (spec.largest) protocol.largest = *spec.largest;
  if (spec.alone_base || spec.alone_local_hop)
    protocol.alone = HopLatency{spec.alone_base.value_or(spec.base).value,
                                spec.alone_local_hop.value_or(spec.local_hop).value, Duration()};
  if (spec.node_cap) protocol.node_cap = spec.node_cap->value;
  if (spec.channel_rate) protocol.channel_rate = spec.channel_rate->value;
  // Trees may be faster than rings, up to the nominal rate of the NICs.
  const Bandwidth of_rings = cluster.nic_bandwidth.value * library.nic_efficiency.value;
  protocol.tree_efficiency =
      std::min(library.tree_efficiency.value, std::max(1.0, cluster.nic_nominal.value / of_rings));
  protocol.slices = spec.slices;
  if (library.nvls && spec.name == "Simple")
    protocol.in_switch =
        InSwitch{{library.nvls->base.value, Duration(), library.nvls->network_hop.value},
                 library.nvls->efficiency.value,
                 library.nvls->chunk.value};
  return protocol;
}

// An override without a source keeps the measured scale. One with a source refers to the program of
// the run, unless another program is named.
void keep_own_scales(const StackSpec& before, const Overrides& overrides, StackSpec& after) {
  const bool names_program = std::ranges::any_of(
      overrides, [](const auto& asked) { return asked.first == "stack.program"; });
  for (const auto& [key, value] : overrides) {
    const bool with_source = value.starts_with('{');
    if (key == "stack.compute_scale" && with_source && !names_program) after.scale_program.clear();
    if (with_source) continue;
    if (key == "stack.compute_scale") after.own_compute_scale = before.own_compute_scale;
    if (key == "stack.optimizer_scale") after.own_optimizer_scale = before.own_optimizer_scale;
  }
}

// Returns the description without its overrides, or nothing if it is incomplete without them.
std::optional<Cluster> as_described(const Table& parsed, const std::string& origin) {
  try {
    return decode_cluster(parsed.copy(), origin);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

Cluster decode_cluster(const Table& described, const std::string& origin, const Priors& priors,
                       const Evidence& evidence) {
  Table root = described;  // the same document
  add_implied_keys(root);
  refuse_missing_keys(root, required_cluster_keys, "commodity-100gbe");
  Cluster cluster;
  cluster.origin = origin;
  cluster.name = root.get<std::string>("name");
  cluster.description = root.get_or<std::string>("description", "");
  cluster.device = root.get<std::string>("device");
  cluster.device_stands_for = root.get_or<std::string>("device_stands_for", "");
  const Table node = root.table("node");
  cluster.gpus_per_node = static_cast<int>(node.integer("gpus", 1, 1024));
  cluster.gpu_peers =
      static_cast<GpuPeers>(node.choice("gpu_peers", {"pcie", "nvlink", "nvlink-mesh"}));
  const bool pcie_peers = cluster.gpu_peers == GpuPeers::pcie;
  cluster.gpu_link = get_within(node, "gpu_link", any_bandwidth);
  cluster.gpu_nic = pcie_peers ? cluster.gpu_link : get_within(node, "gpu_nic", any_bandwidth);
  cluster.host_memory = get_within(node, "host_memory", any_bandwidth,
                                   {updates_on_host, {Kind::assumed, of_updates}});
  if (const auto capacity =
          find_within(node, "host_capacity", Range<Bytes>{Bytes(1e6), Bytes(1e15)}))
    cluster.host_capacity = capacity->value;
  const Table nic = root.table("nic");
  cluster.nics = static_cast<int>(nic.integer("count", 1, 256));
  cluster.nic_nominal = get_within(nic, "nominal", any_bandwidth);
  cluster.nic_bandwidth = get_within(nic, "bandwidth", any_bandwidth);
  cluster.nic_limit = cluster.nic_nominal.value;
  cluster.states_name_plate = cluster.nic_nominal.provenance.kind != Kind::assumed;
  if (cluster.nic_bandwidth.value > cluster.nic_nominal.value * rounding)
    fail_input(nic.where("bandwidth"),
               fmt::format("{} pass through a NIC of {}", to_text_bits(cluster.nic_bandwidth.value),
                           to_text_bits(cluster.nic_nominal.value)),
               "up to nic.nominal");
  cluster.nic_burst = get_within(nic, "burst", Range<Bytes>{Bytes(0), Bytes(1e12)},
                                 {Bytes(0), {Kind::assumed, "not shaped"}});
  const auto network = decode_network(nic);
  cluster.host_link = get_within(node, "host_link", any_bandwidth,
                                 copies_of_process(network, cluster.gpus_per_node));
  std::optional<std::size_t> link_layer;
  if (nic.has("link_layer"))
    link_layer = nic.choice("link_layer", {"infiniband", "ethernet", "slingshot", "omni-path"});
  cluster.port_queue = decode_port_queue(nic, network);
  cluster.fabric = decode_fabric(root.table("fabric"));
  if (root.has("max_nodes"))
    cluster.max_nodes = static_cast<int>(root.integer("max_nodes", 1, 1 << 20));
  const Surroundings around{
      network,
      pcie_peers,
      link_layer ? std::optional(*link_layer == 0) : std::nullopt,
      evidence.link || measures(cluster.gpu_link.provenance),
      evidence.nic == NicRate::effective ? NicRate::effective : nic_rate_of(cluster),
      priors};
  cluster.network = network;
  cluster.nccl = decode_library(root.table("nccl"), DecisionRules::nccl, around);
  refuse_idle_nvls(root, cluster);
  cluster.mpi = decode_library(root.table("mpi"), DecisionRules::openmpi_4_1, around);
  const Table copy = root.table("host_copy");
  cluster.host_copy = {find_within(copy, "pageable_to_host", any_bandwidth),
                       find_within(copy, "pageable_to_device", any_bandwidth),
                       find_within(copy, "staged_by_mpi", any_bandwidth)};
  cluster.stack = decode_stack(root.table("stack"));
  cluster.program = decode_program_level(root.table("program"));
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
  const std::string file = is_path(name_or_path) ? name_or_path : name_or_path + ".toml";
  return load_cluster(Table::parse(cluster_description(name_or_path), file), name_or_path,
                      overrides);
}

Cluster load_cluster(Table parsed, const std::string& name_or_path, const Overrides& said) {
  // Overrides are compared with the parsed text, not with the copy to which they are applied.
  const Overrides overrides = changes_of(parsed, said);
  Table table = parsed.copy();
  std::vector<std::string> flags;
  for (const auto& [key, value] : overrides) {
    flags.push_back(fmt::format("--set cluster.{}", key));
    table.set(key, value, flags.back());
  }
  const std::optional<Bandwidth> exceeded = raise_name_plate(table, overrides);
  const std::string preset = is_path(name_or_path) ? "" : name_or_path + ".toml";
  Cluster cluster = decode_overridden(preset, flags, [&] {
    replace_implied_keys(parsed, overrides, shipped_priors(), table);
    return decode_cluster(table, name_or_path, shipped_priors(), evidence_of(parsed, overrides));
  });
  cluster.nic_limit = nic_limit(cluster, parsed, overrides);
  cluster.exceeded_name_plate = exceeded;
  check_nic_efficiency(cluster, overrides);
  if (overrides.empty()) return cluster;
  const std::optional<Cluster> before = as_described(parsed, name_or_path);
  if (before) {
    keep_companions(*before, overrides, cluster);
    keep_own_scales(before->stack, overrides, cluster.stack);
    cluster.states_name_plate = before->states_name_plate;
  }
  cluster.departure = departure(before, cluster, overrides);
  return cluster;
}

const LibrarySpec& library_of(const Cluster& cluster, Backend backend) {
  return is_mpi(backend) ? cluster.mpi : cluster.nccl;
}

Transport transport_of(const Cluster& cluster, Backend backend) {
  const LibrarySpec& library = library_of(cluster, backend);
  Transport transport;
  transport.endpoint = traits_of(backend).endpoint;
  transport.message_overhead = library.message_overhead.value;
  transport.queue_ahead = library.queue_ahead.value;
  transport.burst = cluster.nic_burst.value / cluster.nic_bandwidth.value;
  if (cluster.port_queue)
    transport.port_queue = {cluster.port_queue->depth.value, cluster.port_queue->rto_min.value};
  if (library.slice) transport.slice = library.slice->value;
  if (library.flow_cap) transport.flow_cap = library.flow_cap->value;
  transport.connections = library.connections;
  transport.all_to_all_efficiency = library.all_to_all_efficiency.value;
  if (library.rules == DecisionRules::nccl) {
    transport.tuning = nccl_machine(cluster);
    transport.over_tcp = cluster.network == NetworkKind::socket;
    if (transport.over_tcp) transport.two_node_tree_efficiency = tree_over_two_sockets;
  }
  if (has_tables(cluster, backend))
    for (const Calibration::Band& band : cluster.calibration->bands)
      if (!band.algorithms.empty()) transport.measured.push_back({band.below, band.algorithms});
  for (const ProtocolSpec& spec : library.protocols)
    transport.protocols.push_back(protocol_of(spec, library, cluster));
  for (const ProtocolSpec& spec : library.of_messages)
    transport.of_messages.push_back(protocol_of(spec, library, cluster));
  // PXN sends over NVLink through another GPU, whose NIC reads GPU memory directly
  // (src/graph/search.cc).
  transport.pxn = library.rules == DecisionRules::nccl && library.pxn &&
                  cluster.network == NetworkKind::rdma && cluster.gpu_peers != GpuPeers::pcie;
  return transport;
}

NicRate nic_rate_of(const Cluster& cluster) {
  return rate_of(cluster.nic_bandwidth, cluster.nic_nominal.value);
}

int nics_in_use(const Cluster& cluster, int gpus_per_node) {
  return std::max(1, cluster.nics * gpus_per_node / cluster.gpus_per_node);
}

Bandwidth reached_nic_rate(const Cluster& cluster, const LibrarySpec& library,
                           const ProcessGroup& group) {
  const Bandwidth rate = cluster.nic_bandwidth.value;
  const double fitted = library.nic_efficiency.value;
  if (library.rules != DecisionRules::nccl) return rate * fitted;
  const NcclTuning machine = nccl_machine(cluster);
  // The share was measured with the default number of channels, even if NCCL limits it (72 GPUs).
  if (machine.min_ctas == 1 && machine.max_ctas == NcclTuning::most_channels) return rate * fitted;
  const NcclChannels channels = nccl_channels(machine, group.per_node);
  if (channels.used == channels.standard) return rate * fitted;
  const double share = channels.used > channels.standard ? std::max(fitted, most_of_nic) : fitted;
  const double per_nic = static_cast<double>(channels.used) / nics_in_use(cluster, group.per_node);
  return std::min(rate * share, channel_rate * per_nic);
}

Machines machines_of(const Cluster& cluster, Backend backend, const ProcessGroup& group) {
  const LibrarySpec& library = library_of(cluster, backend);
  Bandwidth gpu_link = cluster.gpu_link.value;
  if (cluster.gpu_peers == GpuPeers::nvlink_mesh && cluster.gpus_per_node > 1)
    gpu_link = gpu_link * (std::max(1.0, group.per_node - 1.0) / (cluster.gpus_per_node - 1));
  gpu_link = gpu_link * library.link_efficiency.value;
  // A channel has the same rate within a node as between nodes.
  if (library.rules == DecisionRules::nccl && group.nodes() == 1)
    gpu_link = std::min(gpu_link, channel_rate * library.max_ctas);
  const bool pcie = cluster.gpu_peers == GpuPeers::pcie;
  const Bandwidth gpu_nic = cluster.gpu_nic.value;
  const int nics = nics_in_use(cluster, group.slots());
  Bandwidth nic = reached_nic_rate(cluster, library, group);
  // The factor does not apply if several groups share a NIC: one fills it while others wait.
  if (group.per_node == 1 && (group.siblings == 1 || nics >= group.slots()))
    nic = nic * library.single_gpu_efficiency.value;
  return {{group.slots(), nics, gpu_link, pcie,
           pcie ? gpu_nic * library.link_efficiency.value : gpu_nic, nic, cluster.host_link.value},
          group.node_span(),
          make_fabric(cluster.fabric),
          nodes_alike(cluster.fabric, group.node_span())};
}

}  // namespace lambcast
