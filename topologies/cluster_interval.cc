#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "topologies/cluster.h"
#include "topologies/nic_limit.h"

namespace lambcast {
namespace {

std::string in_brackets(const std::vector<std::string>& keys) {
  return keys.empty() ? "" : fmt::format(" (--set changed {})", fmt::join(keys, ", "));
}

// Marks a forecast that overrides affect as extrapolated.
CalibratedInterval departed(const Cluster& cluster, const ProcessGroup& group,
                            CalibratedInterval interval) {
  if (cluster.departure.of(group.nodes()) == 0) return interval;
  interval.calibrated = false;
  interval.ground = std::max(interval.ground, Ground::extrapolated);
  return interval;
}

// Half width of the logarithm for all_to_alls of NCCL over RDMA between nodes. The logarithms of
// the NIC shares behind all_to_all_efficiency (library.cc) have a standard deviation of 0.27 over
// three clusters: 1.645 x 0.27 x sqrt(1 + 1/3) = 0.51.
constexpr double all_to_all_width = 0.5;

// Half width of the logarithm for a preset over TCP whose tables do not state the NIC: cloud
// instances of another size are off by up to 2.5. Overrides do not change this.
const double other_instance_width = std::log(2.5);

bool knows_all_to_all(const Cluster& cluster) {
  return cluster.calibration &&
         std::ranges::find(cluster.calibration->operations, Op::all_to_all) !=
             cluster.calibration->operations.end();
}

// Returns the minimum half width for facts that the tables leave open.
double least_width(const Cluster& cluster, Backend backend, Op op, int nodes) {
  if (nodes == 1 || is_mpi(backend)) return 0;
  if (cluster.network == NetworkKind::rdma)
    return op == Op::all_to_all && !knows_all_to_all(cluster) ? all_to_all_width : 0;
  const bool elsewhere = cluster.calibration && cluster.calibration->another_machine;
  return elsewhere && !cluster.states_name_plate ? other_instance_width : 0;
}

CalibratedInterval widened(CalibratedInterval interval, Duration forecast, double width) {
  if (width == 0) return interval;
  interval.low = std::min(interval.low, forecast.scaled(std::exp(-width)));
  interval.high = std::max(interval.high, forecast.scaled(std::exp(width)));
  return interval;
}

// Returns the interval of one algorithm. Its ground is that of the calibration without overrides.
CalibratedInterval own_interval(const Cluster& cluster, Backend backend, Op op, Bytes size,
                                const ProcessGroup& group, Duration forecast, const RunBy& by) {
  const Typical typical = is_mpi(backend)                        ? Typical::none
                          : cluster.network == NetworkKind::rdma ? Typical::rdma
                                                                 : Typical::socket;
  const int nodes = group.nodes();
  const Departure& departure = cluster.departure;
  // NICs are not used within a node, so they add no uncertainty there.
  const NicEvidence nic = nodes == 1
                              ? NicEvidence(NicRate::effective)
                              : NicEvidence(nic_rate_of(cluster), departure.from_effective_nic);
  const bool without =
      !has_tables(cluster, backend) || std::isinf(departure.of(nodes)) || group.siblings > 1;
  const CalibratedInterval interval =
      without ? uncalibrated_interval(size, group.ranks, nic, typical, forecast)
              : interval_of(*cluster.calibration, op, size, group.ranks, nodes, nic, typical,
                            forecast, by, departure);
  return widened(interval, forecast, least_width(cluster, backend, op, nodes));
}

}  // namespace

bool has_tables(const Cluster& cluster, Backend backend) {
  return cluster.calibration && is_mpi(cluster.calibration->backend) == is_mpi(backend);
}

bool is_calibrated(const Cluster& cluster, Backend backend, int nodes) {
  return has_tables(cluster, backend) && cluster.departure.of(nodes) == 0 &&
         !cluster.departure.choice;
}

CalibratedInterval interval_of(const Cluster& cluster, Backend backend, Op op, Bytes size,
                               const ProcessGroup& group, Duration forecast, const RunBy& by) {
  const CalibratedInterval own = own_interval(cluster, backend, op, size, group, forecast, by);
  CalibratedInterval interval = own;
  if (by.rival) {
    const CalibratedInterval other = own_interval(cluster, backend, op, size, group, by.rival->time,
                                                  {by.rival->algorithm, by.rival->protocol});
    if (own.ground != Ground::calibrated && other.ground <= own.ground) {
      interval.low = std::min(own.low, other.low);
      interval.high = std::max(own.high, other.high);
    }
  }
  const Duration least = least_time_on_nics(cluster, by.leaves_node);
  interval.low = std::max(interval.low, std::min(least, forecast));
  return departed(cluster, group, interval);
}

std::string without_calibration(const Cluster& cluster) {
  return "not calibrated" + in_brackets(cluster.departure.keys);
}

std::string changed_keys(const Cluster& cluster, int nodes) {
  return cluster.departure.of(nodes) > 0 ? in_brackets(cluster.departure.keys) : "";
}

}  // namespace lambcast
