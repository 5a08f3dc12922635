// The highest rate of a node's NICs: no forecast is faster, nor is the low end of any interval.
//
// A NIC is never faster than its nominal rate. An override of nic.bandwidth without nic.nominal
// describes a slower NIC of unknown nominal rate. With b the rate of the override, d the
// description's own rate and N its nominal rate, the limit of a NIC is then
//
//   max(b, N (b / d)^p),  p = 1 + log10(N / d)     for b < d
//
// The limit is N if nothing changes, and b from d / 10 down: the margin that one machine reached
// beyond its described rate is specific to its NIC. The factor 10 is assumed. A change of 1 % in b
// moves the limit by p %, for instance by 2 % for a NIC that is described with a tenth of its
// nominal rate.
#pragma once

#include "sim/base/overrides.h"
#include "sim/base/table.h"
#include "topologies/cluster.h"

namespace lambcast {

// Returns the limit of each NIC of `cluster`, which is `description` with `overrides` applied.
Bandwidth nic_limit(const Cluster& cluster, const Table& description, const Overrides& overrides);

// Returns the time in which all NICs of a node send `bytes` at their limit.
Duration least_time_on_nics(const Cluster& cluster, Bytes bytes);

}  // namespace lambcast
