#include "topologies/departure.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "topologies/cluster.h"
#include "topologies/implied_keys.h"

namespace lambcast {
namespace {

constexpr double per_factor = 0.5, per_doubling = 0.75;
constexpr double without_limit = std::numeric_limits<double>::infinity();

enum class Bears { within_node, between_nodes, on_all };

double number_of(double value) { return value; }
double number_of(Duration value) { return value.s(); }
template <typename Tag>
double number_of(Amount<Tag> value) {
  return value.value();
}
template <typename T>
double number_of(const Sourced<T>& value) {
  return number_of(value.value);
}

// Returns whether an override of `key` sets `field`, a part of it, or a table that contains it.
bool sets(std::string_view key, std::string_view field) {
  const auto holds = [](std::string_view outer, std::string_view inner) {
    return inner == outer || (inner.starts_with(outer) && inner[outer.size()] == '.');
  };
  return holds(key, field) || holds(field, key);
}

class Comparison {
 public:
  explicit Comparison(const Overrides& overrides) : overrides_(overrides) {}

  template <typename T>
  void rate(const std::string& field, Bears bears, const T& before, const T& after) {
    add(field, bears, departure_of_rate(number_of(before), number_of(after)));
  }
  template <typename T>
  void rate(const std::string& field, Bears bears, const std::optional<T>& before,
            const std::optional<T>& after) {
    if (before && after)
      rate(field, bears, *before, *after);
    else
      word(field, bears, before.has_value(), after.has_value());
  }
  void count(const std::string& field, Bears bears, int before, int after) {
    const double doublings = std::abs(std::log2(static_cast<double>(after) / before));
    add(field, bears, per_doubling * std::sqrt(doublings));
  }
  template <typename T>
  void word(const std::string& field, Bears bears, const T& before, const T& after) {
    add(field, bears, before == after ? 0 : without_limit);
  }
  template <typename T>
  void choice(const std::string& field, const T& before, const T& after) {
    if (before == after) return;
    result_.choice = true;
    blame(field);
  }

  // Compares the fields between nodes: NICs, their connection to the GPUs, the fabric.
  void network(const Cluster& before, const Cluster& after) {
    constexpr Bears between = Bears::between_nodes;
    rate("nic.bandwidth", between, before.nic_bandwidth, after.nic_bandwidth);
    count("nic.count", between, before.nics, after.nics);
    rate("nic.burst", between, before.nic_burst, after.nic_burst);
    word("nic.network", between, before.network, after.network);
    word("nic.port_queue", between, before.port_queue.has_value(), after.port_queue.has_value());
    if (before.port_queue && after.port_queue) {
      rate("nic.port_queue", between, before.port_queue->depth, after.port_queue->depth);
      rate("nic.rto_min", between, before.port_queue->rto_min, after.port_queue->rto_min);
    }
    if (after.gpu_peers != GpuPeers::pcie)
      rate("node.gpu_nic", between, before.gpu_nic, after.gpu_nic);
    const FabricSpec &was = before.fabric, &is = after.fabric;
    word("fabric.kind", between, was.kind, is.kind);
    word("fabric.nodes_per_leaf", between, was.nodes_per_leaf, is.nodes_per_leaf);
    word("fabric.dimensions", between, was.dimensions, is.dimensions);
    word("fabric.routers_per_group", between, was.routers_per_group, is.routers_per_group);
    rate("fabric.oversubscription", between, was.oversubscription, is.oversubscription);
  }

  void node(const Cluster& before, const Cluster& after) {
    rate("node.gpu_link", Bears::on_all, before.gpu_link, after.gpu_link);
    word("node.gpu_peers", Bears::on_all, before.gpu_peers, after.gpu_peers);
    count("node.gpus", Bears::on_all, before.gpus_per_node, after.gpus_per_node);
  }

  void host(const Cluster& before, const Cluster& after) {
    const HostCopySpec &was = before.host_copy, &is = after.host_copy;
    rate("node.host_link", Bears::on_all, before.host_link, after.host_link);
    rate("host_copy.pageable_to_host", Bears::on_all, was.pageable_to_host, is.pageable_to_host);
    rate("host_copy.pageable_to_device", Bears::on_all, was.pageable_to_device,
         is.pageable_to_device);
    rate("host_copy.staged_by_mpi", Bears::on_all, was.staged_by_mpi, is.staged_by_mpi);
  }

  void library(const std::string& name, const LibrarySpec& before, const LibrarySpec& after) {
    const auto of = [&](const char* key, Bears bears, auto member) {
      rate(name + "." + key, bears, before.*member, after.*member);
    };
    of("link_efficiency", Bears::on_all, &LibrarySpec::link_efficiency);
    of("nic_efficiency", Bears::between_nodes, &LibrarySpec::nic_efficiency);
    of("single_gpu_efficiency", Bears::between_nodes, &LibrarySpec::single_gpu_efficiency);
    of("tree_efficiency", Bears::between_nodes, &LibrarySpec::tree_efficiency);
    of("all_to_all_efficiency", Bears::between_nodes, &LibrarySpec::all_to_all_efficiency);
    of("slice", Bears::on_all, &LibrarySpec::slice);
    of("queue_ahead", Bears::between_nodes, &LibrarySpec::queue_ahead);
    of("message_overhead", Bears::on_all, &LibrarySpec::message_overhead);
    of("flow_cap", Bears::between_nodes, &LibrarySpec::flow_cap);
    count(name + ".connections", Bears::between_nodes, before.connections, after.connections);
    count(name + ".min_ctas", Bears::on_all, before.min_ctas, after.min_ctas);
    count(name + ".max_ctas", Bears::on_all, before.max_ctas, after.max_ctas);
    choices(name, before, after);
    protocols(name, before, after);
    in_switch(name + ".nvls", before.nvls, after.nvls);
  }

  Departure result() {
    result_.within_node = std::sqrt(within_squared_);
    result_.between_nodes = std::sqrt(between_squared_);
    return std::move(result_);
  }

 private:
  void choices(const std::string& name, const LibrarySpec& before, const LibrarySpec& after) {
    const auto of = [&](const char* key, auto member) {
      choice(name + "." + key, before.*member, after.*member);
    };
    of("library", &LibrarySpec::rules);
    of("all_reduce", &LibrarySpec::all_reduce);
    of("version", &LibrarySpec::minor_version);
    of("algorithms", &LibrarySpec::algorithms);
    of("sharp", &LibrarySpec::sharp);
    of("pxn", &LibrarySpec::pxn);
    of("threads", &LibrarySpec::threads);
    of("ll128_threads", &LibrarySpec::ll128_threads);
    of("tree_threshold", &LibrarySpec::tree_threshold);
    const auto names = [](const LibrarySpec& spec) {
      std::vector<std::string> all;
      for (const ProtocolSpec& protocol : spec.protocols) all.push_back(protocol.name);
      return all;
    };
    choice(name + ".protocols", names(before), names(after));
  }

  void protocols(const std::string& name, const LibrarySpec& before, const LibrarySpec& after) {
    for (const ProtocolSpec& was : before.protocols)
      if (const auto is = std::ranges::find(after.protocols, was.name, &ProtocolSpec::name);
          is != after.protocols.end())
        protocol(name + "." + was.name, was, *is);
  }

  void protocol(const std::string& name, const ProtocolSpec& before, const ProtocolSpec& after) {
    const auto of = [&](const char* key, Bears bears, auto member) {
      rate(name + "." + key, bears, before.*member, after.*member);
    };
    of("base", Bears::on_all, &ProtocolSpec::base);
    of("local_hop", Bears::on_all, &ProtocolSpec::local_hop);
    of("network_hop", Bears::between_nodes, &ProtocolSpec::network_hop);
    of("tree_base", Bears::between_nodes, &ProtocolSpec::tree_base);
    of("tree_local_hop", Bears::between_nodes, &ProtocolSpec::tree_local_hop);
    of("tree_network_hop", Bears::between_nodes, &ProtocolSpec::tree_network_hop);
    of("efficiency", Bears::on_all, &ProtocolSpec::efficiency);
    of("largest", Bears::on_all, &ProtocolSpec::largest);
    of("alone_base", Bears::within_node, &ProtocolSpec::alone_base);
    of("alone_local_hop", Bears::within_node, &ProtocolSpec::alone_local_hop);
    of("node_cap", Bears::between_nodes, &ProtocolSpec::node_cap);
    of("channel_rate", Bears::on_all, &ProtocolSpec::channel_rate);
  }

  void in_switch(const std::string& name, const std::optional<NvlsSpec>& before,
                 const std::optional<NvlsSpec>& after) {
    choice(name, before.has_value(), after.has_value());
    if (!before || !after) return;
    rate(name + ".base", Bears::on_all, before->base, after->base);
    rate(name + ".network_hop", Bears::between_nodes, before->network_hop, after->network_hop);
    rate(name + ".efficiency", Bears::on_all, before->efficiency, after->efficiency);
    rate(name + ".chunk", Bears::on_all, before->chunk, after->chunk);
  }

  void add(const std::string& field, Bears bears, double half_width) {
    if (half_width == 0) return;
    if (bears != Bears::between_nodes) within_squared_ += half_width * half_width;
    if (bears != Bears::within_node) between_squared_ += half_width * half_width;
    blame(field);
  }

  void blame(std::string_view field) {
    for (const auto& [key, value] : overrides_)
      if ((sets(key, field) || implies(key, field)) &&
          std::ranges::find(result_.keys, key) == result_.keys.end())
        result_.keys.push_back(key);
  }

  const Overrides& overrides_;
  Departure result_;
  double within_squared_ = 0, between_squared_ = 0;
};

}  // namespace

double departure_of_rate(double before, double after) {
  if (before == after) return 0;
  return before > 0 && after > 0 ? per_factor * std::abs(std::log(after / before)) : without_limit;
}

Departure departure(const std::optional<Cluster>& before, const Cluster& after,
                    const Overrides& overrides) {
  Departure result;
  if (!before) {
    result.within_node = result.between_nodes = without_limit;
    for (const auto& [key, value] : overrides) result.keys.push_back(key);
    return result;
  }
  if (before->calibration) {
    const bool mpi = is_mpi(before->calibration->backend);
    Comparison comparison(overrides);
    comparison.network(*before, after);
    comparison.node(*before, after);
    if (mpi) comparison.host(*before, after);
    comparison.library(mpi ? "mpi" : "nccl", mpi ? before->mpi : before->nccl,
                       mpi ? after.mpi : after.nccl);
    result = comparison.result();
  }
  if (nic_rate_of(*before) == NicRate::effective &&
      before->nic_bandwidth.value != after.nic_bandwidth.value)
    result.from_effective_nic =
        departure_of_rate(number_of(before->nic_bandwidth), number_of(after.nic_bandwidth));
  return result;
}

}  // namespace lambcast
