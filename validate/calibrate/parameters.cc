#include "validate/calibrate/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "models/device/device.h"
#include "models/training/plan/buffers.h"
#include "validate/calibrate/measured_series.h"

namespace lambcast::validate {
namespace {

// Widths of the priors, as standard deviations of logarithms. Software latencies differ between
// fabrics by a factor of e or more, shares of a link by less. The rate of a link that was measured
// or published is accurate to 15 %.
constexpr double of_latency = 1;
constexpr double of_share = 0.4;
constexpr double of_channel = 0.15;  // rate of a channel; set by a kernel, not by the fabric
double of_bandwidth(const Provenance& from) { return from.kind == Kind::assumed ? of_share : 0.15; }

// Parts of a description that the tables exercise.
struct Coverage {
  bool one_node = false;
  bool nodes = false;             // several nodes
  bool nodes_of_one_gpu = false;  // several nodes with one GPU each
  bool nodes_of_gpus = false;     // several nodes with several GPUs each
  bool trees = false;             // all-reduce over several nodes
  bool in_switch = false;
  bool messages = false;
  bool all_to_all_between = false;  // all_to_all over several nodes
  bool turns = false;               // DeepSpeed's exchange over more than two nodes
  bool wire = false;                // bytes without a library (iperf3, perftest)
  bool copies = false;
  std::set<int> flows;  // connections that share a NIC
};

// Returns the number of connections that share a NIC: one for a ring or tree. An all_to_all or a
// compressed exchange has one for each pair of ranks on different nodes, spread over the NICs.
int flows_of(const Measurement& table, const Cluster& base) {
  if (table.streams) return *table.streams;
  if (table.operation != Operation::all_to_all &&
      table.operation != Operation::compressed_allreduce)
    return 1;
  const int nodes = nodes_of(table, base);
  const int per_node = table.ranks / nodes;
  return (table.ranks - per_node) * per_node / nics_in_use(base, per_node);
}

Coverage coverage_of(std::span<const Measurement> tables, const Cluster& base, bool nvls) {
  Coverage covers;
  for (const Measurement& table : tables) {
    const int nodes = nodes_of(table, base);
    const bool several = nodes > 1;
    if (several) covers.flows.insert(flows_of(table, base));
    covers.wire |= table.streams.has_value();
    covers.copies |= table.staging.has_value();
    if (table.streams) continue;
    const bool many_gpus = table.ranks > nodes;
    covers.one_node |= !several;
    covers.nodes |= several;
    covers.nodes_of_one_gpu |= several && !many_gpus;
    covers.nodes_of_gpus |= several && many_gpus;
    const bool reduces = table.operation == Operation::all_reduce;
    covers.trees |= several && reduces && table.algorithm.value_or("tree") == "tree";
    covers.in_switch |= nvls && reduces && many_gpus;
    covers.messages |=
        table.operation == Operation::all_to_all || table.operation == Operation::stream;
    covers.all_to_all_between |= several && table.operation == Operation::all_to_all;
    covers.turns |= nodes > 2 && table.operation == Operation::compressed_allreduce;
  }
  return covers;
}

// Prior widths for a description fitted to another machine of the same hardware. Two such machines
// differ less than two fabrics, least in the hardware itself. A table of few nodes has errors
// that apply to few nodes only; a wider prior for shares would extend them to more nodes.
constexpr double latency_of_site = 0.35;
constexpr double share_of_site = 0.07;

// Prior width of nccl.all_to_all_efficiency, as a standard deviation of its logarithm. It is wider
// than the prior of nic_efficiency, so a table of all_to_alls mainly changes this share and hardly
// affects the forecast of rings and trees.
constexpr double of_all_to_all = 0.27;

class Listing {
 public:
  Listing(const std::string& library, const Priors::OfKind& priors)
      : library_(library + "."), priors_(priors) {}

  void time(const std::string& key, const Sourced<Duration>& start, double least_us = 0.05) {
    const double us = std::max(start.value.us(), 0.5);
    all.push_back({library_ + key, Unit::microseconds, us, least_us, 1000,
                   width(key, start.provenance, of_latency, latency_of_site)});
  }
  void rate(const std::string& key, const Sourced<Bandwidth>& start, double low_GBps,
            double high_GBps, double otherwise = of_latency) {
    all.push_back({library_ + key, Unit::gigabytes_per_s,
                   std::clamp(start.value.value() * 1e-9, low_GBps, high_GBps), low_GBps, high_GBps,
                   width(key, start.provenance, otherwise, latency_of_site)});
  }
  void share(const std::string& key, const Sourced<double>& start, double low, double high,
             const char* prior = nullptr) {
    all.push_back(
        {library_ + key, Unit::share, std::clamp(start.value, low, high), low, high,
         width(prior == nullptr ? key : prior, start.provenance, of_share, share_of_site)});
  }
  void bytes(const std::string& key, const Sourced<Bytes>& start, double low, double high) {
    all.push_back({library_ + key, Unit::bytes, start.value.value(), low, high,
                   width(key, start.provenance, of_latency, latency_of_site)});
  }
  // Adds the rate of one connection. The fit starts at half of the NIC's rate if the connection's
  // is unknown, or is an assumed value above the NIC's (which has no effect).
  void flow_cap(const std::optional<Sourced<Bandwidth>>& known, double nic_GBps) {
    const double stated = known ? known->value.value() * 1e-9 : 0;
    const bool idle = !known || (known->provenance.kind == Kind::assumed && stated > nic_GBps);
    const double start = idle ? nic_GBps / 2 : stated;
    Parameter cap{library_ + "flow_cap", Unit::gigabytes_per_s,     start,
                  nic_GBps * 1e-3,       std::max(nic_GBps, start), of_latency};
    cap.optional = !known;
    all.push_back(std::move(cap));
  }

  std::vector<Parameter> all;

 private:
  double width(const std::string& key, const Provenance& from, double otherwise,
               double of_site) const {
    if (from.kind == Kind::fitted) return of_site;
    return std::min(otherwise, library_ == "nccl." ? priors_.spread(key, otherwise) : otherwise);
  }

  std::string library_;
  const Priors::OfKind& priors_;
};

void add_protocol(Listing& list, const ProtocolSpec& protocol, const Coverage& covers,
                  Bandwidth nic) {
  const std::string name = protocol.name + ".";
  if (covers.nodes) {
    list.time(name + "base", protocol.base);
    list.time(name + "network_hop", protocol.network_hop);
    if (covers.nodes_of_gpus) list.time(name + "local_hop", protocol.local_hop);
    if (covers.trees) list.time(name + "tree_network_hop", protocol.tree_network_hop);
  }
  if (covers.one_node) {
    list.time(name + "alone_base", protocol.alone_base.value_or(protocol.base));
    list.time(name + "alone_local_hop", protocol.alone_local_hop.value_or(protocol.local_hop));
  }
  if (protocol.channel_rate && (covers.one_node || covers.nodes))
    list.rate(name + "channel_rate", *protocol.channel_rate, 0.1, 200, of_channel);
  if (protocol.name != "LL") return;
  if (covers.one_node || covers.nodes_of_gpus)
    list.share(name + "efficiency", protocol.efficiency, 0.02, 0.5);
  // Proxy threads poll and copy the lines of LL at one rate for any number of NICs; NCCL's own
  // model has a limit per node too. An unknown rate starts at a quarter of the rate of one NIC, so
  // that it has an effect.
  if (covers.nodes)
    list.rate(name + "node_cap", protocol.node_cap.value_or(Sourced<Bandwidth>{nic * 0.25, {}}),
              nic.value() * 0.02e-9, nic.value() * 10e-9);
}

// Adds the rate of the link between processes of a node, which also limits a NIC of the same speed.
// An assumed rate starts at twice the NIC's or more. Then tables inside a node affect only the
// link, and tables between nodes only the NIC.
void add_host_link(Listing& list, const Cluster& base, const Coverage& covers) {
  const bool known = base.host_link.provenance.kind != Kind::assumed;
  const double host_link =
      (known ? base.host_link.value : std::max(base.host_link.value, base.nic_nominal.value * 2))
          .value() *
      1e-9;
  const bool felt =
      covers.one_node || covers.nodes_of_gpus || base.host_link.value < base.nic_nominal.value * 2;
  if (felt && (covers.one_node || covers.nodes))
    list.all.push_back({"node.host_link", Unit::gigabytes_per_s, host_link, host_link / 50,
                        host_link * 50, of_latency});
}

}  // namespace

std::vector<Parameter> parameters_for(const Cluster& base, std::span<const Measurement> tables,
                                      Backend backend) {
  const LibrarySpec& library = library_of(base, backend);
  const bool mpi = is_mpi(backend);
  const Coverage covers = coverage_of(tables, base, library.nvls.has_value());
  Listing list(std::string(traits_of(backend).word), shipped_priors().on(base.network));
  // Over several nodes a ring is limited by its slowest hop, which may be a NIC, so only tables
  // within one node show the rate of a node's links. Over PCIe tables of several nodes show it too,
  // since the path to a NIC is such a link.
  const bool to_nics = base.gpu_peers == GpuPeers::pcie && covers.nodes_of_gpus;
  if (!mpi && (covers.one_node || to_nics))
    list.share("link_efficiency", library.link_efficiency, 0.2, 2);
  if (mpi) add_host_link(list, base, covers);
  if (covers.wire) {
    const double bandwidth = base.nic_bandwidth.value.value() * 1e-9;
    list.all.push_back({"nic.bandwidth", Unit::gigabytes_per_s, bandwidth, bandwidth / 100,
                        std::max(base.nic_nominal.value.value() * 1e-9, bandwidth),
                        of_bandwidth(base.nic_bandwidth.provenance)});
  }
  if (covers.flows.size() > 1 || (library.flow_cap && !covers.flows.empty()))
    list.flow_cap(library.flow_cap, base.nic_nominal.value.value() * 1e-9);
  if (covers.copies) {
    const double start =
        host_copies(base, load_device(base.device)).pageable_to_host.value.value() * 1e-9;
    Parameter copies{"host_copy.pageable_to_host",
                     Unit::gigabytes_per_s,
                     start,
                     start / 50,
                     start * 50,
                     of_latency};
    copies.also = "host_copy.pageable_to_device";
    list.all.push_back(std::move(copies));
  }
  const double to_name_plate = base.nic_nominal.value / base.nic_bandwidth.value;
  const bool nominal = nic_rate_of(base) == NicRate::nominal;
  if (covers.nodes)
    list.share("nic_efficiency", library.nic_efficiency, 0.02, to_name_plate,
               nominal ? "nic_efficiency" : "effective_nic_efficiency");
  // A share of 1 means that nic_efficiency was fitted to all_to_alls themselves. Then there is
  // nothing to add.
  const double of_messages = library.all_to_all_efficiency.value;
  if (!mpi && covers.all_to_all_between && of_messages < 1)
    list.all.push_back(
        {"nccl.all_to_all_efficiency", Unit::share, of_messages, 0.02, 1, of_all_to_all});
  if (covers.nodes_of_one_gpu && covers.nodes_of_gpus)
    list.share("single_gpu_efficiency", library.single_gpu_efficiency, 0.02, 1);
  if (covers.trees)
    list.share("tree_efficiency", library.tree_efficiency, 0.2,
               std::max(1.0, library.tree_efficiency.value));
  if (library.slice) list.bytes("slice", *library.slice, 16384, 16777216);
  if (covers.turns && library.queue_ahead.value.value() > 0)
    list.all.push_back({"mpi.queue_ahead", Unit::bytes, library.queue_ahead.value.value(), 1448,
                        16777216, of_latency});
  if (covers.messages) list.time("message_overhead", library.message_overhead, 0.01);
  for (const ProtocolSpec& protocol : library.protocols)
    add_protocol(list, protocol, covers, base.nic_nominal.value);
  if (covers.in_switch) {
    list.time("nvls.base", library.nvls->base);
    list.share("nvls.efficiency", library.nvls->efficiency, 0.3, 1.5);
    if (covers.nodes) list.time("nvls.network_hop", library.nvls->network_hop);
  }
  return list.all;
}

std::string value_text(Unit unit, double value) {
  switch (unit) {
    case Unit::microseconds:
      return fmt::format("{:.10g} us", value);
    case Unit::gigabytes_per_s:
      return fmt::format("{:.10g} GB/s", value);
    case Unit::bytes:
      return fmt::format("{:.0f} B", value);
    case Unit::share:
      return fmt::format("{:.10g}", value);
  }
  return {};
}

}  // namespace lambcast::validate
