#include "models/training/price/call_sources.h"

#include <algorithm>
#include <string>

namespace lambcast {
namespace {

class Reader {
 public:
  Reader(const Call& call, const CollectiveCost& cost, Duration spent, const Cluster& cluster,
         CostSources& sources)
      : call_(call),
        cost_(cost),
        cluster_(cluster),
        library_(library_of(cluster, call.backend)),
        prefix_(is_mpi(call.backend) ? "mpi_" : "nccl_"),
        between_nodes_(call.group.nodes() > 1),
        host_(traits_of(call.backend).endpoint == Endpoint::host),
        sources_(sources),
        spent_(spent) {
    const Duration on_links = busy_links(), on_nics = busy_nics();
    const Duration busy = std::max(on_links, on_nics);
    if (spent == Duration() || cost.time == Duration()) return;
    wires_ = spent.scaled(std::min(1.0, busy / cost.time));
    latencies_ = spent - wires_;
    links_ = on_links * 2 >= busy ? wires_ : Duration();
    nics_ = on_nics * 2 >= busy ? wires_ : Duration();
  }

  void read_wires() const {
    if (host_)
      read(links_, "host_link", cluster_.host_link);
    else
      read(links_, "gpu_link", cluster_.gpu_link);
    if (!between_nodes_) return;
    if (!host_) read(gpu_ways(), "gpu_nic", cluster_.gpu_nic);
    read(nics_, "nic_bandwidth", cluster_.nic_bandwidth);
    read(nics_, "fabric_oversubscription", cluster_.fabric.oversubscription);
    read(nics_, prefix_ + "nic_efficiency", library_.nic_efficiency);
    if (cluster_.port_queue) {
      read(spent_, "port_queue", cluster_.port_queue->depth);
      read(spent_, "rto_min", cluster_.port_queue->rto_min);
    }
    if (call_.op == Op::all_reduce && call_.algorithm.empty() && !library_.all_reduce.empty())
      sources_.read_for(spent_, prefix_ + "all_reduce", library_.all_reduce_from);
  }

  // Reads the latencies of the protocol in use. The last protocol in the list has names without a
  // prefix, which are also used for protocols that are not in the list.
  void read_latency() const {
    if (library_.nvls && cost_.algorithm.starts_with("nvls")) {
      read(latencies_, prefix_ + "base", library_.nvls->base);
      if (between_nodes_) read(latencies_, prefix_ + "latency", library_.nvls->network_hop);
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
    read(latencies_, prefix + "base", base);
    if (between_nodes_)
      read(latencies_, prefix + "latency", tree ? protocol.tree_network_hop : protocol.network_hop);
    if (call_.group.per_node > 1)
      read(latencies_, prefix + (alone ? "latency" : "local_latency"), local);
  }

  // Reads the library's efficiencies, caps and overheads.
  void read_library() const {
    const bool all_to_all = call_.op == Op::all_to_all;
    if (call_.group.per_node > 1 && library_.rules == DecisionRules::nccl)
      read(links_, prefix_ + "link_efficiency", library_.link_efficiency);
    if (between_nodes_ && call_.group.per_node == 1)
      read(nics_, prefix_ + "single_gpu_efficiency", library_.single_gpu_efficiency);
    if (between_nodes_ && library_.flow_cap) read(nics_, prefix_ + "flow_cap", *library_.flow_cap);
    if (library_.slice && !all_to_all) read(spent_, prefix_ + "slice", *library_.slice);
    if (!all_to_all) return;
    if (between_nodes_)
      read(nics_, prefix_ + "all_to_all_efficiency", library_.all_to_all_efficiency);
    if (library_.message_overhead.value > Duration())
      read(latencies_, prefix_ + "message_overhead", library_.message_overhead);
    if (between_nodes_ && library_.queue_ahead.value > Bytes())
      read(spent_, prefix_ + "queue_ahead", library_.queue_ahead);
  }

 private:
  Duration busy_links() const {
    const double share = call_.group.per_node > 1 && library_.rules == DecisionRules::nccl
                             ? library_.link_efficiency.value
                             : 1;
    const Bandwidth link = host_ ? cluster_.host_link.value : cluster_.gpu_link.value;
    return cost_.traffic.sent_per_rank / (link * share);
  }

  Duration busy_nics() const {
    if (!between_nodes_) return {};
    const int gpus = call_.group.per_node * call_.group.siblings;
    const Bandwidth nic = reached_nic_rate(cluster_, library_, call_.group);
    return cost_.traffic.network_sent_per_node / (nic * nics_in_use(cluster_, gpus));
  }

  // Returns the part of the NICs' time that also depends on `gpu_nic`: all of it unless the path
  // from a GPU to its NICs is at least twice as fast as these NICs.
  Duration gpu_ways() const {
    const double nics_each = static_cast<double>(cluster_.nics) / cluster_.gpus_per_node;
    const Bandwidth own = cluster_.nic_bandwidth.value * std::max(1.0, nics_each);
    return cluster_.gpu_nic.value / own < 2 ? nics_ : Duration();
  }

  template <typename T>
  void read(Duration part, const std::string& cost, const Sourced<T>& number) const {
    sources_.read_for(part, cost, number.provenance);
  }

  const Call& call_;
  const CollectiveCost& cost_;
  const Cluster& cluster_;
  const LibrarySpec& library_;
  std::string prefix_;
  bool between_nodes_, host_;
  CostSources& sources_;
  Duration spent_, wires_, latencies_;
  Duration links_, nics_;  // the parts of wires_ that depend on the rates of links and of NICs
};

}  // namespace

void read_sources(const Call& call, const CollectiveCost& cost, Duration spent,
                  const Cluster& cluster, CostSources& sources) {
  const Reader reader(call, cost, spent, cluster, sources);
  reader.read_wires();
  reader.read_latency();
  reader.read_library();
}

}  // namespace lambcast
