// Distance of a description with overrides from the machine that was measured.
//
// A calibration is never deleted: each number that differs adds a term to the half width of the
// intervals that it affects. Terms add as squares, and a term is 0 if nothing differs.
//
//   k |ln(new / old)|   for rates, latencies, shares and sizes, k = 0.5
//   0.75 sqrt(d)        for counts, with d doublings between them (w of calibration.h)
//   infinite            for words, and for values present in only one of the two descriptions
//
// k and the term of counts are assumed. calibration.h limits the sum to the width of a description
// without tables. Each key affects:
//
//   nic.*, fabric.*, node.gpu_nic          groups over several nodes
//   node.gpu_link, gpu_peers, gpus         all groups
//   LIBRARY.nic_efficiency, tree_*,        groups over several nodes
//     network_hop, node_cap, flow_cap,
//     connections, single_gpu_efficiency
//   LIBRARY.PROTOCOL.alone_*               groups within a node
//   other numbers of the library           all groups
//   version, algorithms, protocols, sharp, the choice of the algorithm: its costs stay calibrated,
//     pxn, all_reduce, threads             but bands that do not name algorithms no longer apply
//   the library that was not measured      nothing
//   nic.nominal, nccl.reported_latency     nothing except NCCL's choice, which is forecast anew
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/overrides.h"

namespace lambcast {

struct Cluster;

struct Departure {
  // Half widths added to the intervals of groups within one node, and over several nodes.
  double within_node = 0, between_nodes = 0;
  // The library may run other algorithms than in the measurements.
  bool choice = false;
  // Half width of the change of the NICs' rate, if the rate was effective before.
  std::optional<double> from_effective_nic{};
  // The overrides that cause the departure, as the user gave them.
  std::vector<std::string> keys{};
  bool operator==(const Departure&) const = default;

  double of(int nodes) const { return nodes == 1 ? within_node : between_nodes; }
};

// Returns the half width for a rate that was measured at `before`; infinite if one of the rates is
// zero.
double departure_of_rate(double before, double after);

// Returns the departure between the description without overrides, `before`, and the one with them,
// `after`. `before` is empty if the description is incomplete without its overrides; the departure
// is then infinite.
Departure departure(const std::optional<Cluster>& before, const Cluster& after,
                    const Overrides& overrides);

}  // namespace lambcast
