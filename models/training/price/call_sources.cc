#include "models/training/price/call_sources.h"

#include <algorithm>
#include <string>

namespace lambcast {
namespace {

class Reader {
 public:
  Reader(const Call& call, const CollectiveCost& cost, const Cluster& cluster, CostSources& sources)
      : call_(call),
        cost_(cost),
        cluster_(cluster),
        library_(library_of(cluster, call.backend)),
        prefix_(is_mpi(call.backend) ? "mpi_" : "nccl_"),
        between_nodes_(call.group.nodes() > 1),
        sources_(sources) {}

  void read_wires() const {
    const bool host = traits_of(call_.backend).endpoint == Endpoint::host;
    if (host)
      read("host_link", cluster_.host_link);
    else
      read("gpu_link", cluster_.gpu_link);
    if (!between_nodes_) return;
    if (!host) read("gpu_nic", cluster_.gpu_nic);
    read("nic_bandwidth", cluster_.nic_bandwidth);
    read("fabric_oversubscription", cluster_.fabric.oversubscription);
    read(prefix_ + "nic_efficiency", library_.nic_efficiency);
    if (cluster_.port_queue) {
      read("port_queue", cluster_.port_queue->depth);
      read("rto_min", cluster_.port_queue->rto_min);
    }
    if (call_.op == Op::all_reduce && call_.algorithm.empty() && !library_.all_reduce.empty())
      sources_.read(prefix_ + "all_reduce", library_.all_reduce_from);
  }

  // Reads the latencies of the protocol in use. The last protocol, the widest, has names without a
  // prefix and also stands for a protocol that is not in the list.
  void read_latency() const {
    if (library_.nvls && cost_.algorithm.starts_with("nvls")) {
      read(prefix_ + "base", library_.nvls->base);
      if (between_nodes_) read(prefix_ + "latency", library_.nvls->network_hop);
      return;
    }
    const auto named = std::ranges::find(library_.protocols, cost_.protocol, &ProtocolSpec::name);
    const bool widest = named == library_.protocols.end() || named + 1 == library_.protocols.end();
    const ProtocolSpec& protocol = widest ? library_.protocols.back() : *named;
    const std::string prefix = widest ? prefix_ : prefix_ + protocol.name + "_";
    const bool alone = !between_nodes_, tree = cost_.algorithm == "tree";
    const Sourced<Duration> base = tree    ? protocol.tree_base
                                   : alone ? protocol.alone_base.value_or(protocol.base)
                                           : protocol.base;
    const Sourced<Duration> local = tree    ? protocol.tree_local_hop
                                    : alone ? protocol.alone_local_hop.value_or(protocol.local_hop)
                                            : protocol.local_hop;
    read(prefix + "base", base);
    if (between_nodes_)
      read(prefix + "latency", tree ? protocol.tree_network_hop : protocol.network_hop);
    if (call_.group.per_node > 1) read(prefix + (alone ? "latency" : "local_latency"), local);
  }

  // Reads the numbers by which a library's use of the wires differs from their capacity.
  void read_library() const {
    const bool all_to_all = call_.op == Op::all_to_all;
    if (call_.group.per_node > 1 && library_.rules == DecisionRules::nccl)
      read(prefix_ + "link_efficiency", library_.link_efficiency);
    if (between_nodes_ && call_.group.per_node == 1)
      read(prefix_ + "single_gpu_efficiency", library_.single_gpu_efficiency);
    if (between_nodes_ && library_.flow_cap) read(prefix_ + "flow_cap", *library_.flow_cap);
    if (library_.slice && !all_to_all) read(prefix_ + "slice", *library_.slice);
    if (!all_to_all) return;
    if (between_nodes_) read(prefix_ + "all_to_all_efficiency", library_.all_to_all_efficiency);
    if (library_.message_overhead.value > Duration())
      read(prefix_ + "message_overhead", library_.message_overhead);
    if (between_nodes_ && library_.queue_ahead.value > Bytes())
      read(prefix_ + "queue_ahead", library_.queue_ahead);
  }

 private:
  template <typename T>
  void read(const std::string& cost, const Sourced<T>& number) const {
    sources_.read(cost, number.provenance);
  }

  const Call& call_;
  const CollectiveCost& cost_;
  const Cluster& cluster_;
  const LibrarySpec& library_;
  std::string prefix_;
  bool between_nodes_;
  CostSources& sources_;
};

}  // namespace

void read_sources(const Call& call, const CollectiveCost& cost, const Cluster& cluster,
                  CostSources& sources) {
  const Reader reader(call, cost, cluster, sources);
  reader.read_wires();
  reader.read_latency();
  reader.read_library();
}

}  // namespace lambcast
