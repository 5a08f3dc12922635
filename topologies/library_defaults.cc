#include "topologies/library_defaults.h"

namespace lambcast {
namespace {

const char* const tuning = "NCCL src/graph/tuning.cc (2.28, 2.30)";
const char* const sockets =
    "two-rank all-reduces over NET/Socket in public nccl-tests logs: 25 to 50 us per hop";

struct HopsUs {
  double base, local, network;
};

ProtocolSpec protocol(const char* name, HopsUs ring, HopsUs tree, double efficiency,
                      Provenance local, Provenance network) {
  const auto time = [](double us, const Provenance& from) {
    return Sourced<Duration>{Duration::microseconds(us), from};
  };
  return {name,
          time(ring.base, local),
          time(ring.local, local),
          time(ring.network, network),
          time(tree.base, local),
          time(tree.local, local),
          time(tree.network, network),
          {efficiency, local},
          std::nullopt,
          1,
          std::nullopt,
          std::nullopt,
          std::nullopt,
          std::nullopt};
}

// Rate of LL over more than two nodes in NCCL's model, with Intel CPUs (src/graph/tuning.cc).
constexpr Bandwidth ll_of_four_nodes(20.4e9);

// Rate at which all proxy threads and copies of one node together move data over TCP, with any
// NICs.
constexpr Bandwidth node_over_tcp(6e9);
const char* const of_nodes_over_tcp =
    "4.5 to 7.7 GB/s left nodes with NICs of 100 Gbit/s and more over TCP (nccl#450 and others)";

// Returns the rate of one channel. LL: between the rates of 24 channels inside a node of V100 and
// of A100 in NCCL's model, 39 and 87.7 GB/s. LL128: the limit of one channel of a ring in that
// model (src/graph/tuning.cc). Simple: 16 channels moved 321 GB/s between nodes of H100
// (nccl-tests#309).
Bandwidth channel_rate_of(std::string_view protocol) {
  return Bandwidth(protocol == "LL" ? 3e9 : 20e9);
}

// Multiplies the constants of a protocol by their typical factors.
void expect_typical(ProtocolSpec& protocol, const Priors& priors, NetworkKind network) {
  const auto& known = priors.on(network).of;
  const auto prior = [&](const char* key) { return known.find(protocol.name + "." + key); };
  const auto from = [&](const auto& found) {
    return Provenance{Kind::assumed, source_of(priors, network, found->first)};
  };
  const auto scale = [&](const char* key, Sourced<Duration>& value) {
    const auto found = prior(key);
    if (found != known.end()) value = {value.value.scaled(found->second.typical), from(found)};
  };
  protocol.alone_base = protocol.base;
  protocol.alone_local_hop = protocol.local_hop;
  scale("alone_base", *protocol.alone_base);
  scale("alone_local_hop", *protocol.alone_local_hop);
  scale("base", protocol.base);
  scale("base", protocol.tree_base);
  scale("local_hop", protocol.local_hop);
  scale("local_hop", protocol.tree_local_hop);
  scale("network_hop", protocol.network_hop);
  scale("tree_network_hop", protocol.tree_network_hop);
  const auto share = prior("efficiency");
  if (share != known.end())
    protocol.efficiency = {protocol.efficiency.value * share->second.typical, from(share)};
  const auto of_channel = prior("channel_rate");
  if (of_channel != known.end())
    protocol.channel_rate = {channel_rate_of(protocol.name) * of_channel->second.typical,
                             from(of_channel)};
  const auto cap = prior("node_cap");
  if (cap != known.end()) protocol.node_cap = {ll_of_four_nodes * cap->second.typical, from(cap)};
}

}  // namespace

std::vector<ProtocolSpec> nccl_protocols(NetworkKind network, bool pcie_peers,
                                         const Priors& priors) {
  const Provenance published{Kind::published, tuning};
  const Provenance assumed{Kind::assumed, sockets};
  const bool rdma = network == NetworkKind::rdma;
  const Provenance& wire = rdma ? published : assumed;
  // The latency of a hop inside a node depends on its way: NVLink, or PCIe and host memory.
  const double ll = pcie_peers ? 1.0 : 0.6;
  const double simple_ring = pcie_peers ? 5.7 : 3.4;
  std::vector<ProtocolSpec> protocols;
  protocols.push_back(protocol("LL", {6.6, ll, rdma ? 2.7 : 30.0}, {6.8, ll, rdma ? 5.0 : 30.0},
                               0.5, published, wire));
  // LL128 needs 128-byte stores that are not split, which PCIe and sockets do not guarantee.
  if (rdma && !pcie_peers)
    protocols.push_back(protocol("LL128", {14, 1.9, 4.0}, {14, 1.25, 8.5}, 0.92, published, wire));
  protocols.push_back(protocol("Simple", {8.4, simple_ring, rdma ? 14.0 : 40.0},
                               {8.4, 4.0, rdma ? 14.0 : 40.0}, 1.0, published, wire));
  protocols.back().slices = 2;  // chunk steps over slice steps of its rings (src/include/device.h)
  if (!rdma) protocols.back().node_cap = {node_over_tcp, {Kind::assumed, of_nodes_over_tcp}};
  for (ProtocolSpec& one : protocols) expect_typical(one, priors, network);
  return protocols;
}

std::vector<ProtocolSpec> mpi_protocols(NetworkKind network) {
  const bool rdma = network == NetworkKind::rdma;
  const Provenance assumed{Kind::assumed, rdma ? "typical MPI latency over InfiniBand verbs"
                                               : "typical MPI latency over TCP"};
  const HopsUs hops{0, 1.0, rdma ? 2.0 : 30.0};
  return {protocol("mpi", hops, hops, 1.0, assumed, assumed)};
}

Sourced<Bandwidth> copies_of_process(NetworkKind network, int processes) {
  constexpr Bandwidth of_one(5e9), of_node(6.5e9);
  const Bandwidth share = of_node * (1.0 / processes);
  if (network == NetworkKind::rdma || share >= of_one)
    return {of_one, {Kind::assumed, "shared-memory MPI between processes"}};
  return {share,
          {Kind::assumed,
           "processes on one node of osu_allreduce over TCP: 8 GB/s in sum with 4 a node (10 GbE, "
           "8 nodes), 5.6 with 8 (32 Gbit/s, 4 to 32 nodes)"}};
}

Sourced<Bytes> queue_ahead(NetworkKind network) {
  if (network == NetworkKind::rdma)
    return {Bytes(0), {Kind::assumed, "an RDMA NIC serves its queues in turn"}};
  return {
      Bytes(2 * 65536.0),
      {Kind::assumed,
       "two packets of 64 KiB, the least of Linux net/ipv4/tcp_output.c, tcp_small_queue_check"}};
}

}  // namespace lambcast
