#include "topologies/library.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <iterator>
#include <set>
#include <sstream>

#include "sim/base/error.h"
#include "sim/base/range.h"
#include "sim/collectives/algorithms.h"
#include "topologies/library_defaults.h"

namespace lambcast {
namespace {

constexpr Range<double> up_to_one{1e-4, 1};

// Replaces the library's own constants by those of the file.
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
  // The library's values for a single node are dropped if the file states the corresponding ones
  // for several nodes, which then apply to both.
  if (table.has("base")) protocol.alone_base.reset();
  if (table.has("local_hop")) protocol.alone_local_hop.reset();
  if (const auto value = find_within(table, "alone_base", any_latency)) protocol.alone_base = value;
  if (const auto value = find_within(table, "alone_local_hop", any_latency))
    protocol.alone_local_hop = value;
  if (const auto value = find_within(table, "node_cap", any_bandwidth)) protocol.node_cap = value;
  if (const auto value = find_within(table, "channel_rate", any_bandwidth))
    protocol.channel_rate = value;
}

// Returns the name without case and separators: "NVLSTree" and "nvls_tree" are equal.
std::string plain(std::string_view name) {
  std::string letters;
  for (const char c : name)
    if (c != '_') letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return letters;
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream rest(text);
  for (std::string part; std::getline(rest, part, at);) parts.push_back(part);
  return parts;
}

// Returns the names that a key lists, one per entry or all in one text as in the environment. From
// 2.24 on, "ring;allreduce:tree" means the ring for all functions and then the tree for one
// (src/graph/tuning.cc, parseList). The list is that of all_reduce, since other functions have only
// one algorithm here. Returns nothing if the text does not mention all_reduce.
std::optional<std::vector<std::string>> names_of(const Table& table, std::string_view key) {
  const auto listed = table.get<std::vector<std::string>>(key);
  if (listed.size() != 1) return listed;
  std::optional<std::string> last;
  const std::vector<std::string> entries = split(listed.front(), ';');
  for (const std::string& entry : entries) {
    const std::size_t colon = entry.find(':');
    if (colon == std::string::npos) {
      if (&entry != &entries.front())
        fail_input(table.where(key), fmt::format("'{}' names no function", entry),
                   "function:names after the first ;");
      last = entry;
      continue;
    }
    const std::vector<std::string> functions{"broadcast", "reduce", "allgather", "reducescatter",
                                             "allreduce"};
    const std::string function = plain(entry.substr(0, colon));
    if (std::find(functions.begin(), functions.end(), function) == functions.end())
      fail_unknown(table.where(key), "function of NCCL", function, functions);
    if (key != "algorithms")
      fail_input(table.where(key), "protocols by function are not modelled",
                 "names without a function");
    if (function == "allreduce") last = entry.substr(colon + 1);
  }
  if (!last) return std::nullopt;
  return split(*last, ',');
}

// Parses a list in the form of NCCL_ALGO and NCCL_PROTO: names in any case, or after "^" the names
// to leave out. Returns the names in `known` that it allows for an all_reduce. Names in
// `not_modelled` may only be left out.
std::vector<std::string> listed_of(const Table& table, std::string_view key, const char* what,
                                   const std::vector<std::string>& known,
                                   const std::vector<std::string>& not_modelled = {}) {
  const auto said = names_of(table, key);
  if (!said) return known;
  std::vector<std::string> listed = *said;
  const bool all_but = !listed.empty() && listed.front().starts_with('^');
  if (all_but) listed.front().erase(0, 1);
  std::set<std::string> named;
  for (const std::string& name : listed) {
    const auto is = [&](const std::string& other) { return plain(other) == plain(name); };
    const auto found = std::find_if(known.begin(), known.end(), is);
    if (found != known.end())
      named.insert(*found);
    else if (!all_but || std::none_of(not_modelled.begin(), not_modelled.end(), is))
      fail_unknown(table.where(key), what, name, known);
  }
  std::vector<std::string> left;
  for (const std::string& name : known)
    if (named.contains(name) != all_but) left.push_back(name);
  if (left.empty()) fail_input(table.where(key), "selects none of the values");
  return left;
}

// Restricts collectives to the protocols that the file lists, if it lists any.
void choose_protocols(const Table& table, LibrarySpec& spec) {
  if (!table.has("protocols")) return;
  std::vector<std::string> names;
  for (const ProtocolSpec& protocol : spec.protocols) names.push_back(protocol.name);
  const auto left = listed_of(table, "protocols", "protocol", names, {"LL128"});
  const auto out = std::stable_partition(
      spec.protocols.begin(), spec.protocols.end(), [&](const ProtocolSpec& protocol) {
        return std::find(left.begin(), left.end(), protocol.name) != left.end();
      });
  std::copy_if(out, spec.protocols.end(), std::back_inserter(spec.of_messages),
               [](const ProtocolSpec& protocol) { return protocol.name != "LL128"; });
  spec.protocols.erase(out, spec.protocols.end());
}

// Returns whether the switches of this network reduce. Throws Error if the file enables it on a
// network that cannot.
bool reduces_in_network(const Table& table, const Surroundings& around, const LibrarySpec& spec) {
  if (!table.get_or<bool>("sharp", false)) return false;
  if (around.network != NetworkKind::rdma)
    fail_input(table.where("sharp"), "SHARP needs InfiniBand; try: network = \"rdma\"");
  if (!around.infiniband.value_or(true))
    fail_input(table.where("sharp"),
               "SHARP needs InfiniBand, but nic.link_layer states another network");
  if (spec.reported_latency.value > Duration())
    fail_input(
        table.where("sharp"),
        "SHARP needs InfiniBand, but reported_latency comes from a plugin for another network");
  return true;
}

// Parses "2.19" as 19.
int nccl_minor_version(const Table& table) {
  const auto text = table.get<std::string>("version");
  int minor = 0;
  const bool read =
      text.starts_with("2.") &&
      std::from_chars(text.data() + 2, text.data() + text.size(), minor).ec == std::errc();
  const bool by_threshold = read && minor == 4;
  if (by_threshold && !table.has("tree_threshold"))
    fail_input(table.where("version"),
               "NCCL 2.4 chose between ring and tree by size alone: needs tree_threshold");
  if (!read || (minor < NcclTuning::oldest && !by_threshold))
    fail_input(table.where("version"),
               fmt::format("'{}' is not a version of NCCL known here", text),
               fmt::format("2.{} and later", NcclTuning::oldest));
  return minor;
}

// Returns the threads of a channel, a multiple of the warp size 32; zero if the file does not state
// them.
int threads_of(const Table& table, const char* key, int least, int most) {
  if (!table.has(key)) return 0;
  const auto threads = static_cast<int>(table.integer(key, least, most));
  if (threads % 32 != 0)
    fail_input(table.where(key), fmt::format("{} threads are not a whole number of warps", threads),
               "a multiple of 32");
  return threads;
}

// Reads the version and the settings of NCCL_ALGO, NCCL_MIN_CTAS, NCCL_MAX_CTAS, NCCL_NTHREADS,
// NCCL_LL128_NTHREADS and NCCL_TREE_THRESHOLD.
void read_environment(const Table& table, LibrarySpec& spec) {
  if (table.has("version")) spec.minor_version = nccl_minor_version(table);
  spec.pxn = table.get_or<bool>("pxn", true);
  if (table.has("algorithms"))
    spec.algorithms = listed_of(
        table, "algorithms", "algorithm of NCCL",
        {"ring", "tree", "nvls", "nvls_tree", "collnet_direct", "collnet_chain"}, {"PAT"});
  const auto channels = [&](const char* key, int otherwise) {
    return table.has(key) ? static_cast<int>(table.integer(key, 1, NcclTuning::most_channels))
                          : otherwise;
  };
  spec.min_ctas = channels("min_ctas", spec.min_ctas);
  spec.max_ctas = channels("max_ctas", spec.max_ctas);
  if (spec.min_ctas > spec.max_ctas)
    fail_input(table.where("min_ctas"),
               fmt::format("{} is above max_ctas, {}", spec.min_ctas, spec.max_ctas));
  spec.threads = threads_of(table, "threads", 64, 512);
  spec.ll128_threads = threads_of(table, "ll128_threads", 160, 640);
  if (const auto below = table.find<Bytes>("tree_threshold")) {
    if (spec.minor_version > 4)
      fail_input(
          table.where("tree_threshold"),
          "NCCL 2.5 and later have no tree threshold; try: remove the key, or version = \"2.4\"");
    spec.tree_threshold = *below;
  }
}

void force_all_reduce(const Table& table, LibrarySpec& spec) {
  const auto forced = table.find<Sourced<std::string>>("all_reduce");
  if (!forced) return;
  const std::vector<std::string> known = algorithms_of(Op::all_reduce);
  if (std::find(known.begin(), known.end(), forced->value) == known.end())
    fail_unknown(table.where("all_reduce"), "algorithm of an all_reduce", forced->value, known);
  spec.all_reduce = forced->value;
  spec.all_reduce_from = forced->provenance;
}

// Resets settings that have no effect, so that they compare equal to absent ones.
void forget_idle(LibrarySpec& spec) {
  spec.minor_version = nccl_choices_since(spec.minor_version, spec.nvls.has_value());
  if (!spec.flow_cap) spec.connections = 1;
}

// Decodes the table `nvls` of the NCCL section. Missing keys get defaults, so it may be empty.
NvlsSpec decode_nvls(const Table& table, const Priors& priors) {
  const bool learned = priors.rdma.of.contains("nvls.base");
  const auto time = [&](const char* key, double us) {
    const std::string prior = std::string("nvls.") + key;
    const Provenance from{learned ? Kind::assumed : Kind::published,
                          learned ? source_of(priors, NetworkKind::rdma, prior)
                                  : "NCCL src/graph/tuning.cc (2.28, 2.30)"};
    return get_within(table, key, any_latency,
                      {Duration::microseconds(us * priors.rdma.typical(prior)), from});
  };
  return NvlsSpec{
      time("base", 25), time("network_hop", 20.9), factor(table, "efficiency", {1e-4, 2}, 0.85),
      get_within(table, "chunk", any_latency, {Duration(), {Kind::assumed, "default"}})};
}

// Reads a share of a rate; the default is the typical share on other fabrics.
Sourced<double> typical_share(const Table& table, std::string_view key, const Range<double>& range,
                              const Surroundings& around, std::string_view prior) {
  const Priors::OfKind& priors = around.priors.on(around.network);
  if (table.has(key) || !priors.of.contains(prior)) return factor(table, key, range);
  return {priors.typical(prior), {Kind::assumed, source_of(around.priors, around.network, prior)}};
}

// Returns the share of its NIC that one GPU a node reaches, relative to a ring over all GPUs and
// NICs of the node. On InfiniBand it was measured apart from that ring's share.
Sourced<double> single_gpu_efficiency(const Table& table, const Surroundings& around) {
  constexpr const char* key = "single_gpu_efficiency";
  const bool rdma = around.network == NetworkKind::rdma;
  if (rdma && around.infiniband.value_or(false) && !table.has(key))
    return {
        0.96,
        {Kind::published,
         "InfiniBand: 46 to 48 GB/s of each NDR NIC expected by NVIDIA (nccl-tests#290), some 50 "
         "seen with one H100 on each of two nodes (nccl-tests#232)"}};
  return typical_share(table, key, up_to_one, around, key);
}

// Large all_to_alls of NCCL over RDMA reached 0.45 and 0.74 (one cluster, two settings), 0.67 and
// 0.97 of the nominal rate of their NICs: geometric mean 0.68 over the four, 0.72 over the three
// clusters. 0.70 is used; rings reach 0.90.
Sourced<double> all_to_all_efficiency(const Table& table, NetworkKind network) {
  const bool rdma = network == NetworkKind::rdma;
  return get_within(table, "all_to_all_efficiency", Range<double>{1e-4, 2},
                    {rdma ? 0.78 : 1,
                     {Kind::assumed, rdma ? "0.70 of the NIC on three clusters (0.45 to 0.97), "
                                            "where rings reach 0.90"
                                          : "default"}});
}

}  // namespace

Sourced<double> factor(const Table& table, std::string_view key, const Range<double>& range,
                       double otherwise) {
  return get_within(table, key, range, {otherwise, {Kind::assumed, "default"}});
}

LibrarySpec decode_library(const Table& table, DecisionRules standard, const Surroundings& around) {
  const auto& [network, pcie_peers, infiniband, link_known, nic_rate, priors] = around;
  LibrarySpec spec;
  spec.rules = standard;
  if (standard != DecisionRules::nccl && table.has("library"))
    spec.rules =
        static_cast<DecisionRules>(1 + table.choice("library", {"openmpi-4.0", "openmpi-4.1"}));
  const bool nccl = standard == DecisionRules::nccl;
  constexpr Range<double> of_nic{1e-4, 100}, of_link{1e-4, 2};
  spec.nic_efficiency = factor(table, "nic_efficiency", of_nic);
  spec.link_efficiency = {1, {Kind::assumed, "default"}};
  spec.single_gpu_efficiency = factor(table, "single_gpu_efficiency", up_to_one);
  spec.tree_efficiency = factor(table, "tree_efficiency", of_link);
  if (nccl) {
    spec.nic_efficiency =
        typical_share(table, "nic_efficiency", of_nic, around,
                      nic_rate == NicRate::nominal ? "nic_efficiency" : "effective_nic_efficiency");
    spec.link_efficiency =
        link_known ? factor(table, "link_efficiency", of_link)
                   : typical_share(table, "link_efficiency", of_link, around, "link_efficiency");
    spec.single_gpu_efficiency = single_gpu_efficiency(table, around);
    spec.tree_efficiency =
        typical_share(table, "tree_efficiency", of_link, around, "tree_efficiency");
  }
  spec.all_to_all_efficiency = all_to_all_efficiency(table, nccl ? network : NetworkKind::socket);
  spec.slice = find_within(table, "slice", Range<Bytes>{Bytes(1), Bytes(1e12)});
  const Priors::OfKind& typical = priors.on(network);
  if (nccl && !spec.slice && typical.of.contains("slice"))
    spec.slice = {Bytes(0x1p20) * typical.typical("slice"),
                  {Kind::assumed, source_of(priors, network, "slice")}};
  if (standard != DecisionRules::nccl)
    spec.queue_ahead =
        get_within(table, "queue_ahead", Range<Bytes>{Bytes(0), Bytes(1e12)}, queue_ahead(network));
  spec.message_overhead = get_within(
      table, "message_overhead", any_latency,
      {Duration::microseconds(1),
       {Kind::published, "network post overhead of 1 us on Intel (NCCL src/graph/tuning.cc)"}});
  if (nccl)
    spec.reported_latency =
        get_within(table, "reported_latency", any_latency,
                   {Duration(), {Kind::published, "NCCL src/transport/net_ib.cc, net_socket.cc"}});
  spec.flow_cap = find_within(table, "flow_cap", any_bandwidth);
  // One thread serves a connection of any library, so the cap applies to MPI too.
  if (!spec.flow_cap && typical.of.contains("flow_cap"))
    spec.flow_cap = {Bandwidth(1e9) * typical.typical("flow_cap"),
                     {Kind::assumed, source_of(priors, network, "flow_cap")}};
  if (table.has("connections"))
    spec.connections = static_cast<int>(table.integer("connections", 1, 1024));
  force_all_reduce(table, spec);
  if (nccl) {
    read_environment(table, spec);
    spec.sharp = reduces_in_network(table, around, spec);
  }
  spec.protocols = nccl ? nccl_protocols(network, pcie_peers, priors) : mpi_protocols(network);
  const bool has_ll128 = std::any_of(spec.protocols.begin(), spec.protocols.end(),
                                     [](const ProtocolSpec& one) { return one.name == "LL128"; });
  if (standard == DecisionRules::nccl && !has_ll128 && table.has("LL128"))
    fail_input(table.where("LL128"),
               "NCCL has LL128 over NVLink and RDMA only: measurements with them do not apply to "
               "this machine, start from a preset that is more like it");
  for (ProtocolSpec& protocol : spec.protocols)
    override_protocol(table.table(protocol.name), protocol);
  choose_protocols(table, spec);
  if (nccl && table.has("nvls")) spec.nvls = decode_nvls(table.table("nvls"), priors);
  if (nccl) forget_idle(spec);
  return spec;
}

}  // namespace lambcast
