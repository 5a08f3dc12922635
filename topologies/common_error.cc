#include "topologies/common_error.h"

#include <cmath>
#include <numbers>

#include "topologies/nccl_machine.h"

namespace lambcast {
namespace {

constexpr double of_rings = 0.74, of_connections = 0.47, of_one_nic = 0.95;
constexpr double of_a_fit = 0.3;
constexpr double connection_spread = 0.4;

// Returns the probability that the NIC limits a ring, and not its TCP connections.
double nic_is_the_limit(const Cluster& cluster, const ProcessGroup& group) {
  const LibrarySpec& nccl = cluster.nccl;
  if (cluster.network != NetworkKind::socket || !nccl.flow_cap || group.nodes() == 1) return 0;
  const Bandwidth connections = nccl.flow_cap->value * nccl.connections *
                                nccl_channels_of_a_lane(nccl_machine(cluster), group.per_node);
  const double margin = std::log(connections / reached_nic_rate(cluster, nccl, group));
  return 0.5 * std::erfc(-margin / (connection_spread * std::numbers::sqrt2));
}

}  // namespace

double common_error(const Cluster& cluster, Backend backend, Op op, const ProcessGroup& group) {
  if (is_mpi(backend)) return 0;
  const double of_nic = nic_is_the_limit(cluster, group);
  const bool messages = (op == Op::all_to_all || op == Op::send_recv) && group.nodes() > 1;
  const bool fitted =
      is_calibrated(cluster, backend, group.nodes()) && !cluster.calibration->another_machine;
  const bool has_root = op == Op::broadcast || op == Op::reduce;
  const bool over_tcp = cluster.network == NetworkKind::socket && group.nodes() > 1;
  const double otherwise = messages ? 0 : fitted ? of_a_fit : over_tcp ? of_connections : of_rings;
  const double with_nic = fitted ? of_a_fit : has_root ? of_rings : of_one_nic;
  return of_nic * with_nic + (1 - of_nic) * otherwise;
}

}  // namespace lambcast
