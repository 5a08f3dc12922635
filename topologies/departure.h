// How far overrides take a description from the machine that was measured.
//
// A calibration is never deleted: each number that differs adds a term to the half width of the
// intervals that it bears on, as a root sum of squares, which is 0 where nothing differs.
//
//   k |ln(new / old)|   of rates, latencies, shares and sizes, k = 0.5
//   0.75 sqrt(d)        of counts, d the doublings between them (w of calibration.h)
//   without limit       of words, and of what is there in one of the two descriptions only
//
// k and the term of counts are assumed. calibration.h caps the sum by the width of a description
// without tables. Each key bears on:
//
//   nic.*, fabric.*, node.gpu_nic          groups over several nodes
//   node.gpu_link, gpu_peers, gpus         all groups
//   LIBRARY.nic_efficiency, tree_*,        groups over several nodes
//     network_hop, node_cap, flow_cap,
//     connections, single_gpu_efficiency
//   LIBRARY.PROTOCOL.alone_*               groups within a node
//   other numbers of the library           all groups
//   version, algorithms, protocols, sharp, which algorithm runs: costs of each stay, and a band
//   that
//     pxn, all_reduce, threads             does not name those it measured says nothing any more
//   the library that was not measured      nothing
//   nic.nominal, nccl.reported_latency     nothing: NCCL's choice alone, which is forecast anew
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/overrides.h"

namespace lambcast {

struct Cluster;

struct Departure {
  // Half widths that join the intervals of groups within one node, and over several.
  double within_node = 0, between_nodes = 0;
  // The library may choose otherwise than it did where it was measured.
  bool choice = false;
  // From a rate that somebody got out of the NICs: its half width.
  std::optional<double> from_effective_nic{};
  // The overrides that it follows from, as they were given.
  std::vector<std::string> keys{};
  bool operator==(const Departure&) const = default;

  double of(int nodes) const { return nodes == 1 ? within_node : between_nodes; }
};

// Half width of a rate that was measured at `before`; without limit if one of them is zero.
double departure_of_rate(double before, double after);

// From the description as it stands to the one that `overrides` make of it. A description that is
// incomplete without its overrides, which `before` is empty for, is as far away as can be.
Departure departure(const std::optional<Cluster>& before, const Cluster& after,
                    const Overrides& overrides);

}  // namespace lambcast
