#include "models/training/call_sources.h"

#include <string>

namespace lambcast {
namespace {

class Reader {
 public:
  Reader(const Call& call, const Cluster& cluster, CostSources& sources)
      : call_(call),
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

  void read_latency() const {
    const ProtocolSpec& protocol = library_.protocols.back();
    read(prefix_ + "latency", between_nodes_ ? protocol.network_hop : protocol.local_hop);
  }

  // What a library makes of the wires.
  void read_library() const {
    const bool all_to_all = call_.op == Op::all_to_all;
    if (call_.group.per_node > 1 && library_.rules == DecisionRules::nccl)
      read(prefix_ + "link_efficiency", library_.link_efficiency);
    if (between_nodes_ && call_.group.per_node == 1)
      read(prefix_ + "single_gpu_efficiency", library_.single_gpu_efficiency);
    if (between_nodes_ && library_.flow_cap) read(prefix_ + "flow_cap", *library_.flow_cap);
    if (library_.slice && !all_to_all) read(prefix_ + "slice", *library_.slice);
    if (!all_to_all) return;
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
  const Cluster& cluster_;
  const LibrarySpec& library_;
  std::string prefix_;
  bool between_nodes_;
  CostSources& sources_;
};

}  // namespace

void read_sources(const Call& call, const Cluster& cluster, CostSources& sources) {
  const Reader reader(call, cluster, sources);
  reader.read_wires();
  reader.read_latency();
  reader.read_library();
}

}  // namespace lambcast
