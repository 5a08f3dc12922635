#include "topologies/common_error.h"

#include "topologies/nccl_machine.h"

namespace lambcast {
namespace {

constexpr double of_rings = 0.74, of_one_nic = 0.95, of_a_fit = 0.3;

// Whether the connections that NCCL opens over TCP carry all that a NIC does.
bool nic_sets_the_rate(const Cluster& cluster, const ProcessGroup& group) {
  const LibrarySpec& nccl = cluster.nccl;
  if (cluster.network != NetworkKind::socket || !nccl.flow_cap) return false;
  const double connections =
      nccl.connections * nccl_channels_of_a_lane(nccl_machine(cluster), group.per_node);
  return nccl.flow_cap->value * connections >= reached_nic_rate(cluster, nccl, group);
}

}  // namespace

double common_error(const Cluster& cluster, Backend backend, Op op, const ProcessGroup& group) {
  if (is_mpi(backend)) return 0;
  const bool messages = op == Op::all_to_all || op == Op::send_recv;
  const bool between = group.nodes() > 1;
  const bool one_nic = between && nic_sets_the_rate(cluster, group);
  if (messages && between && !one_nic) return 0;
  if (is_calibrated(cluster, backend, group.nodes()) && !cluster.calibration->another_machine)
    return of_a_fit;
  return one_nic ? of_one_nic : of_rings;
}

}  // namespace lambcast
